"""Options that no run decides: definitions, and what somebody concludes from a fact.

For each of them the beginning of its text, whether it is right, and why.
"""

BY_DEFINITION: dict[str, dict[str, tuple[str, bool, str]]] = {
    "01-5": {
        "B": ("The instructions of a processor", False, "Assembly. Relay knows no register."),
        "C": ("A description of what a target", False, "That is the target, given beside it."),
        "D": (
            "The file format",
            False,
            "Both formats are read by an importer, which writes Relay.",
        ),
    },
    "06-4": {
        "D": ("To get an order in memory", True, "The purpose; the other three are measured."),
    },
    "07-5": {
        "B": (
            "The count of the bytes",
            False,
            "Fewer bytes and more time do not exclude each other.",
        ),
        "D": ("Y runs on more threads", False, "The page runs both on one thread."),
    },
    "13-1": {
        "C": ("That F was chosen badly", False, "F is given, and the sum adds seconds to any F."),
        "D": ("That the times were measured", False, "The question gives both times."),
    },
}
