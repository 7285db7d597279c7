# The workbook in a container, for whoever has no Linux on x86-64:
#
#     docker build --platform linux/amd64 -t relay-workbook .
#     docker run --rm --platform linux/amd64 -p 127.0.0.1:8888:8888 relay-workbook
#
# The steps are those of `make lab`. Binder takes this file, too: hence the names of the two ARGs.
FROM debian:bookworm-slim AS system
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates g++ git make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
ARG NB_USER=learner
ARG NB_UID=1000
RUN useradd --create-home --shell /bin/bash --uid ${NB_UID} ${NB_USER}
ENV USER=${NB_USER} HOME=/home/${NB_USER} LANG=C.UTF-8
USER ${NB_UID}

FROM system
ARG NB_UID=1000
# WORKDIR alone would make a folder of root's.
RUN mkdir ${HOME}/workbook
WORKDIR ${HOME}/workbook
# What is installed does not depend on the rest, so that a change there does not install anew.
COPY --chown=${NB_UID} Makefile *.lock ./
COPY --chown=${NB_UID} setup setup
COPY --chown=${NB_UID} helpers helpers
RUN make check-env
COPY --chown=${NB_UID} . .
# For a server that is not started by make, as Binder's.
ENV PATH=${HOME}/workbook/.venv/bin:${PATH} JUPYTER_CONFIG_PATH=${HOME}/workbook/setup/jupyter
ENV LABFLAGS="--ip=0.0.0.0 --no-browser"
EXPOSE 8888
CMD ["make", "lab"]
