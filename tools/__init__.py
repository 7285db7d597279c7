"""What builds and checks the workbook; nothing here is imported by a notebook."""
