# For a machine that has only python3 (3.11 or later), pip and make. Everything goes into .venv and .tools
# of this folder, the model into the user's cache folder; nothing else is touched. After that, `doit list`
# is the manual.

PYTHON ?= python3
UV     ?= $(shell command -v uv || echo .tools/bin/uv)
Q      ?= What happens when I press Ctrl-C during a build?

.PHONY: demo test check lock
.DELETE_ON_ERROR:

demo: .venv/.build ## Set up, build the bundle of sites/, answer one question from it
	@.venv/bin/doit build
	@printf '\n$$ ralph ask "%s"\n' "$(Q)"
	@.venv/bin/ralph ask "$(Q)"
	@printf '%s\n' "" "Next: make demo Q='your question'" \
		"      .venv/bin/ralph add ~/path/of/your/site    says what it needs, shows what would be published" \
		"      .venv/bin/ralph search --explain 'words'   shows why each hit was found" \
		"      .venv/bin/ralph serve                      a page that asks it: http://127.0.0.1:3001/ask/demo" \
		"      .venv/bin/doit list                        every task of the build"

test: .venv/.dev ## Set up, pass the tests
	@.venv/bin/pytest -n auto --dist loadfile

check: .venv/.dev ## Lint and type-check
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy

lock: $(UV) ## Pin the newest versions that pyproject.toml allows
	@$(COMPILE) --upgrade --extra build --extra mcp --extra dev pyproject.toml -o requirements/dev.txt
	@$(COMPILE) --extra build -c requirements/dev.txt pyproject.toml -o requirements/build.txt
	@$(COMPILE) -c requirements/dev.txt pyproject.toml -o requirements/serve.txt
	@$(COMPILE) -c requirements/dev.txt plugins/ralph-fs/pyproject.toml -o plugins/ralph-fs/requirements.txt

COMPILE = $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock"

# uv brings its own certificates; a machine behind a proxy has more of them in the system's store.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem /etc/pki/tls/certs/ca-bundle.crt),)
export UV_SYSTEM_CERTS = true
endif

# uv does not read pip's configuration: an index configured there is passed on.
INDEX   = $(addprefix --default-index ,$(shell $(PYTHON) -m pip config get global.index-url 2>/dev/null || echo $$PIP_INDEX_URL))
INSTALL = $(UV) pip install --quiet --python .venv/bin/python $(INDEX)
REFUSE_OLD_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"Ralph needs Python 3.11 or later, and $(PYTHON) is older. If there is another: make PYTHON=python3.13")'

# pip's --target works where the system's python refuses installs (PEP 668), and uv makes a .venv where
# the venv module is missing.
.tools/bin/uv: requirements/uv.txt
	@$(REFUSE_OLD_PYTHON)
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { \
		echo "Ralph needs pip (on Debian: apt install python3-pip) or uv to fetch its packages" >&2; exit 1; }
	@echo "setting up: uv"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-warn-script-location \
		--root-user-action=ignore --upgrade --target .tools --require-hashes -r $<
	@touch $@

.venv/.python: | $(UV)
	@$(REFUSE_OLD_PYTHON)
	@$(UV) venv --quiet --clear --python $(PYTHON) .venv
	@touch $@

.venv/.build: requirements/build.txt pyproject.toml .venv/.python
	@echo "setting up: packages"
	@$(INSTALL) --require-hashes -r $<
	@$(INSTALL) --no-deps --editable .
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.build
	@echo "setting up: packages for the tests"
	@$(INSTALL) --require-hashes -r $<
	@touch $@
