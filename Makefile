# weir: everything a person or a CI does, one word each. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON := .venv/bin/python
# Where players and benchmarks find publishers, judges and browsers of the end-to-end tests.
HARNESS := Tests/EndToEndTests
# What is shipped: no Swift runtime to install beside it, and no dynamic exclusivity checks, which cost up to 13 % (docs/figures.md).
# Overflow and bounds checks stay.
RELEASE := -c release --static-swift-stdlib -Xswiftc -enforce-exclusivity=unchecked
BUILT ?= .build/release/weir
BIN = $(abspath $(BUILT))
SHARE = $(PREFIX)/share

# What is packed, and where artefacts go. Given another binary (BUILT=…), nothing is built.
OUT ?= out
BUILD_FIRST = $(if $(filter file,$(origin BUILT)),build)

# What tests run: one optimised build for the unit tests and for the server that the end-to-end tests start. The server is
# linked as the released one is.
TESTED := -c release -Xswiftc -enable-testing -Xswiftc -enforce-exclusivity=unchecked \
  -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
TESTED_BIN := $(abspath .build/tested/weir)
UNIT_TESTS := .build/tested/weirPackageTests.xctest

BUILD_PACKAGES := binutils ca-certificates git libasound2-dev libavcodec-dev libavformat-dev libavutil-dev libc6-dev \
  libsqlite3-dev libsrt-gnutls-dev libsrtp2-dev libssl-dev libstdc++-12-dev libswresample-dev libswscale-dev libv4l-dev pkg-config \
  python3 zlib1g-dev
PACK_PACKAGES := dpkg-dev python3 xz-utils
PACKAGE_TEST_PACKAGES := $(PACK_PACKAGES) buildah curl debootstrap ffmpeg fish lintian mandoc systemd-container zsh
CHECK_PACKAGES := python3
WEB_PACKAGES := node-typescript nodejs zbar-tools
TEST_PACKAGES := caddy certbot chromium chromium-driver curl ffmpeg firefox-esr fish gcc gir1.2-gst-plugins-bad-1.0 gir1.2-gst-plugins-base-1.0 gstreamer1.0-libav \
  gstreamer1.0-nice gstreamer1.0-plugins-bad \
  gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-ugly gstreamer1.0-tools haproxy iproute2 nghttp2-client \
  mandoc nginx-light openssl pebble python3 python3-dbusmock python3-gi python3-pip python3-venv varnish srt-tools xfsprogs btrfs-progs strace faketime zsh \
  dbus-bin dbus-daemon nftables sqlite3 zbar-tools
SHORT_DEVICE_PACKAGES := binutils busybox-static cpio curl ffmpeg kmod python3 qemu-system-x86
DEVICE_PACKAGES := $(SHORT_DEVICE_PACKAGES) gcc-12 make
BENCH_PACKAGES := e2fsprogs ffmpeg gcc libc6-dev libnginx-mod-rtmp nghttp2-client nginx-light openssl python3 \
  util-linux-extra wrk xfsprogs

# When it began, what each step took, and how well the machine kept time meanwhile.
export WEIR_STEPS ?= $(abspath .build/steps)

.PHONY: help run build tested check-sources rules test-long all-deps clean-cache install uninstall dist deb pack-deps test-packages check web docs library-docs format test test-devices test-devices-short unit quick e2e faults torture soak many-streams calls contract fuzz fuzz-coverage sanitize players bench exclusivity deps test-deps bench-deps clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: build ## build weir and start it with a demo stream
	exec "$(BIN)" serve --test-pattern demo $(ARGS)

build: deps ## build the release binary
	.ci/embed-pages
	.ci/build release "$(RELEASE)" weir

# Without a build: sudo has a PATH of its own, mostly without a compiler, and what root builds others cannot replace.
install: ## install what `make build` made to $(PREFIX): the program, its manual, completions, and units of systemd (docs/service.md)
	@[ -x "$(BUILT)" ] || { \
	  echo "error: there is no $(BUILT) to install: run make build first, as yourself, then sudo make install" >&2; exit 1; }
	install -D -m 755 -s "$(BUILT)" "$(DESTDIR)$(PREFIX)/bin/weir"
	for unit in packaging/systemd/*; do \
	  target="$(DESTDIR)$(PREFIX)/lib/systemd/system/$$(basename "$$unit")"; \
	  install -D -m 644 "$$unit" "$$target" && sed -i 's|@PREFIX@|$(PREFIX)|' "$$target"; \
	done
	packaging/write-manual "$(BUILT)" "$(DESTDIR)$(SHARE)/man/man1"
	packaging/write-completions "$(BUILT)" "$(DESTDIR)$(SHARE)/bash-completion/completions" \
	  "$(DESTDIR)$(SHARE)/zsh/site-functions" "$(DESTDIR)$(SHARE)/fish/vendor_completions.d"
	packaging/write-notices "$(BUILT)" "$(DESTDIR)$(SHARE)/doc/weir/third-party.txt"
	install -m 644 LICENSE NOTICE README.md CHANGELOG.md "$(DESTDIR)$(SHARE)/doc/weir"

# Settings, state and recordings stay.
uninstall: ## remove what `make install` installed; settings and recordings stay
	rm -f "$(DESTDIR)$(PREFIX)/bin/weir" "$(DESTDIR)$(SHARE)"/man/man1/weir.1 "$(DESTDIR)$(SHARE)"/man/man1/weir-*.1 \
	  $(patsubst packaging/systemd/%,"$(DESTDIR)$(PREFIX)/lib/systemd/system/%",$(wildcard packaging/systemd/*)) \
	  "$(DESTDIR)$(SHARE)/bash-completion/completions/weir" "$(DESTDIR)$(SHARE)/zsh/site-functions/_weir" \
	  "$(DESTDIR)$(SHARE)/fish/vendor_completions.d/weir.fish"
	rm -rf "$(DESTDIR)$(SHARE)/doc/weir"

dist: $(BUILD_FIRST) pack-deps ## a tarball of what `make install` installs, and its sha256, in $(OUT)
	packaging/build-tarball "$(BUILT)" "$(OUT)"

deb: $(BUILD_FIRST) pack-deps ## a Debian package, and its sha256, in $(OUT)
	packaging/build-deb "$(BUILT)" "$(OUT)"

check: check-sources tested ## format, lint, imports, sizes, which folder uses which, the pages, and a build in which every warning is an error

check-sources: web # what of `check` needs no build
	@.ci/install-packages "the checks" $(CHECK_PACKAGES)
	$(SWIFT) format lint --strict -r Package.swift Sources Tests
	.ci/check-sources
	.ci/fuzz-coverage --check >/dev/null
	.ci/figures --unnamed >/dev/null || { .ci/figures --unnamed | grep error >&2; exit 1; }
	$(HARNESS)/budget.py --check

# Beside tests that keep time: `chrt -i 0 make tested`. `nice` does not reach the compiler's processes.
tested: deps # the unit tests, and the server for end-to-end tests
	.ci/build tested "$(TESTED)" weir weirPackageTests.xctest

web: ## the pages' scripts: that all are embedded, their types, and tests of what needs no browser (10 s)
	@.ci/install-packages "the pages" $(WEB_PACKAGES)
	.ci/embed-pages --check
	tsc -p web
	.ci/within 10 node --test --test-reporter=spec Tests/WebTests/*.test.mjs

docs: build library-docs ## write the tables of docs/flags.md and docs/http.md, and the documentation of FMP4 into .build/docs
	.ci/write-flags "$(BIN)"
	.ci/write-api "$(BIN)"

DOCS := .build/docs
# The toolchain's own, beside its compiler.
DOCC = $(dir $(shell command -v $(SWIFT)))docc

# The compiler writes a graph of the public names of each module that it compiles. What has not changed is not compiled again,
# so all graphs stay, and FMP4's alone is documented. A warning fails: a link to a name that is gone is one.
library-docs: deps # the documentation of FMP4: its comments, in the order of Sources/FMP4/FMP4.docc
	mkdir -p $(DOCS)/graphs
	$(SWIFT) build --target FMP4 --scratch-path $(DOCS)/build \
	  -Xswiftc -emit-symbol-graph -Xswiftc -emit-symbol-graph-dir -Xswiftc "$(abspath $(DOCS)/graphs)"
	rm -rf $(DOCS)/FMP4 $(DOCS)/FMP4.doccarchive
	install -D -m 644 -t $(DOCS)/FMP4 $(DOCS)/graphs/FMP4.symbols.json
	$(DOCC) convert Sources/FMP4/FMP4.docc --additional-symbol-graph-dir $(DOCS)/FMP4 \
	  --output-dir $(DOCS)/FMP4.doccarchive --fallback-default-module-kind Library --warnings-as-errors

format: ## lay the sources out as `make check` wants them
	$(SWIFT) format -i -r Package.swift Sources Tests

# The unit tests have the machine to themselves, then the end-to-end tests. The virtual machine comes last: it takes all
# processors for a while.
test: ## check, and all tests (twenty minutes when built)
	@mkdir -p .build && rm -f $(WEIR_STEPS)
	.ci/step packages $(MAKE) --no-print-directory all-deps
	.ci/step "build and checks" $(MAKE) --no-print-directory -j2 tested check-sources rules
	.ci/step "unit tests" $(MAKE) --no-print-directory CHECKED=1 unit
	$(MAKE) --no-print-directory CHECKED=1 e2e
	.ci/step "device test" $(MAKE) --no-print-directory CHECKED=1 test-devices-short
	$(HARNESS)/budget.py --steps $(WEIR_STEPS)

# Tests/long.txt tells the last run; `make check` wants a good one.
test-long: check rules test-deps build pack-deps ## what `make test` leaves out: variants of speed, second browsers, encoders, attacks; contract, days, packages (an hour)
	@rm -f $(WEIR_STEPS)
	WEIR_BIN="$(TESTED_BIN)" $(HARNESS)/run --long
	rm -rf .build/tests-long && mkdir -p .build/tests-long && cp .build/tests/*.json .build/tests-long
	WEIR_BIN="$(BIN)" $(HARNESS)/run --only idle
	WEIR_TESTS=long .ci/step "unit tests, long" .ci/quick "$(UNIT_TESTS)"
	.ci/step contract $(MAKE) --no-print-directory CHECKED=1 CONTRACT_CALLS=5000 contract
	.ci/step packages $(MAKE) --no-print-directory test-packages
	$(HARNESS)/budget.py --steps $(WEIR_STEPS)
	$(HARNESS)/budget.py --note .build/tests-long $(WEIR_STEPS)

# Empty where `make test` has checked already.
CHECK = $(if $(CHECKED),,check)

unit: $(if $(CHECKED),,tested) ## unit tests, several suites at a time (MODULES="FMP4 RTMP" picks some)
	.ci/quick "$(UNIT_TESTS)" $(MODULES)

quick: tested unit ## build, and the unit tests (45 seconds when built; MODULES=FMP4 picks those of one module)

rules: .venv/ready # tests of judges and documents, which need no server; and which tests each lane has
	WEIR_LANES=$(abspath .build/tests/lanes.json) $(PYTHON) -m pytest $(HARNESS) --rootdir $(HARNESS) --lane rules -q

e2e: $(CHECK) test-deps ## end-to-end tests: publish, watch and record, judged by independent tools (ARGS="-k rtmp" picks some)
	WEIR_BIN="$(TESTED_BIN)" $(HARNESS)/run $(ARGS)

# WEIR_PACKAGES=long has 300 viewers and 20 publishers. WEIR_MACHINE=chroot does without systemd, as where it cannot be started.
test-packages: $(BUILD_FIRST) test-deps ## the package in an empty Debian: install, watch, upgrade, remove (3 minutes; root, debootstrap)
	@.ci/install-packages "the tests of packages" $(PACKAGE_TEST_PACKAGES)
	WEIR_BIN="$(abspath $(BUILT))" $(PYTHON) -m pytest Tests/Packages -s $(ARGS)

test-devices: check ## cameras and microphones in a virtual machine: record, switch, starve, unplug (3 minutes; root)
	@.ci/install-packages "the device tests" $(DEVICE_PACKAGES)
	WEIR_BIN="$(TESTED_BIN)" Tests/Devices/run

# Where its packages cannot be had, it says so and is counted as skipped.
test-devices-short: $(CHECK) ## a camera and a microphone in a virtual machine: watch, record, switch (a minute; part of `make test`)
	@.ci/install-packages "the short device test" $(SHORT_DEVICE_PACKAGES) || true
	WEIR_BIN="$(TESTED_BIN)" Tests/Devices/run short

faults: check test-deps ## what goes wrong in the field, as often as is promised: 100 resets, 50 losses, 5000 viewers, attacks
	WEIR_FAULTS=long WEIR_BIN="$(TESTED_BIN)" $(PYTHON) -m pytest Tests/EndToEndTests/test_faults.py \
	  Tests/EndToEndTests/test_load.py Tests/EndToEndTests/test_attacks.py Tests/EndToEndTests/test_restart.py Tests/EndToEndTests/test_reload.py \
	  Tests/EndToEndTests/test_events.py Tests/EndToEndTests/test_viewer_tokens.py Tests/EndToEndTests/test_key_sets.py \
	  Tests/EndToEndTests/test_guessing.py Tests/EndToEndTests/test_days.py Tests/EndToEndTests/test_under_attack.py \
	  Tests/EndToEndTests/browser/test_page_restart.py Tests/EndToEndTests/browser/test_tracks.py \
	  Tests/EndToEndTests/test_whip.py::test_flash_and_beep_stay_together \
	  Tests/EndToEndTests/browser/test_webrtc_figures.py::test_flash_and_beep_of_the_publish_page_stay_together -s $(ARGS)

# How often weir is killed while it records, within salvage and within finalising, and the power is cut.
KILLS ?= 250
SALVAGES ?= 200
FINALS ?= 100
CUTS ?= 100

torture: check test-deps ## recordings under kill -9, power cuts and failing disks, as often as is promised (an hour; root)
	WEIR_TORTURE=1 $(UNIT_TESTS) --testing-library swift-testing --no-parallel --filter RecordingScanner
	WEIR_TORTURE=1 WEIR_TORTURE_KILLS=$(KILLS) WEIR_TORTURE_SALVAGES=$(SALVAGES) WEIR_TORTURE_FINALS=$(FINALS) \
	  WEIR_TORTURE_CUTS=$(CUTS) WEIR_BIN="$(TESTED_BIN)" \
	  $(PYTHON) -m pytest Tests/EndToEndTests/test_recording_crash.py Tests/EndToEndTests/test_recording_disk.py \
	  Tests/EndToEndTests/test_recording_room.py $(ARGS)

# Hours of media that pass sixty times as fast as time.
HOURS ?= 24

soak: check test-deps ## a day in 24 minutes, with each of two allocators: memory and descriptors stay flat, no frame is lost
	@.ci/install-packages "the soak" libjemalloc2
	WEIR_SOAK=1 WEIR_SOAK_HOURS=$(HOURS) WEIR_BIN="$(TESTED_BIN)" $(PYTHON) -m pytest Tests/EndToEndTests/test_soak.py $(ARGS)

many-streams: check test-deps ## what the home page of 500 streams costs the browser and the server (4 minutes)
	WEIR_MANY_STREAMS=500 WEIR_BIN="$(TESTED_BIN)" $(PYTHON) -m pytest Tests/EndToEndTests/browser/test_many_streams.py -s $(ARGS)

# How many calls of each kind fail.
CALLS ?= 300

calls: check test-deps ## calls for descriptors, memory and disks that fail, CALLS=300 of each kind, while all goes on (two hours)
	WEIR_CALLS=long WEIR_CALLS_COUNT=$(CALLS) WEIR_BIN="$(TESTED_BIN)" $(PYTHON) -m pytest Tests/EndToEndTests/test_calls.py -s $(ARGS)

# How many calls are made up.
CONTRACT_CALLS ?= 20000

contract: $(CHECK) test-deps ## the API under 20,000 calls made up from its own description (schemathesis): no 500, no answer that it does not declare
	WEIR_CONTRACT=$(CONTRACT_CALLS) WEIR_BIN="$(TESTED_BIN)" $(PYTHON) -m pytest Tests/EndToEndTests/test_contract.py -s $(ARGS)

# Each parser for so many seconds; what was found is kept in .build/fuzz, findings as crash-*.
SECONDS = 30
FUZZ_TARGETS = rtmp chunks amf tags codecs http scanner http2 fields recording demux file names directives times query proxies catalogue ts pes psi captions adts latm mpegaudio token prefix configuration srt stun sdp rtp rtcp h264rtp h265rtp av1rtp vp9rtp vp8rtp
# The backtracer would hang on the pipe. Swift's runtime keeps what it allocates, which is no leak.
FUZZ_ENVIRONMENT = SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0

fuzz: deps ## feed every wire parser with inputs that libFuzzer makes up, SECONDS=30 each
	WEIR_FUZZ=1 $(SWIFT) build -c release --scratch-path .build/fuzz --product Fuzz 2>&1 | grep -vE 'unhandled;|not used by|^    /'
	for target in $(FUZZ_TARGETS); do \
	  mkdir -p .build/fuzz/seeds/$$target .build/fuzz/corpus/$$target; \
	  export WEIR_FUZZ_TARGET=$$target $(FUZZ_ENVIRONMENT); \
	  WEIR_FUZZ_SEEDS=.build/fuzz/seeds/$$target .build/fuzz/release/Fuzz; \
	  echo "fuzzing $$target for $(SECONDS) s"; \
	  .build/fuzz/release/Fuzz -max_total_time=$(SECONDS) -max_len=65536 -timeout=5 -malloc_limit_mb=64 \
	    -use_value_profile=1 -print_final_stats=1 -artifact_prefix=.build/fuzz/crash-$$target- \
	    .build/fuzz/corpus/$$target .build/fuzz/seeds/$$target 2>&1 | grep -E 'ERROR|SUMMARY|Fatal|DONE|number_of_exec|artifact' ; \
	done

# Of these targets; all that .ci/fuzz-parsers.txt names if there is none.
TARGETS ?=

fuzz-coverage: deps ## lines of each wire parser that the seeds and the inputs kept by `make fuzz` reach; TARGETS="ts psi" picks some
	WEIR_FUZZ=coverage $(SWIFT) build -c release --scratch-path .build/fuzz-coverage --product Fuzz 2>&1 | grep -vE 'unhandled;|not used by|^    /'
	SWIFT="$(SWIFT)" .ci/fuzz-coverage .build/fuzz-coverage/release/Fuzz .build/fuzz/corpus $(TARGETS)

# What runs on a server that looks for data races, and on one that looks for memory that is used wrongly.
SANITIZED := test_beginnings.py test_hostile.py test_http.py test_http2.py test_lowlatency_hls.py test_recordings_api.py \
  test_replay.py test_restart.py test_recording_crash.py
SANITIZERS ?= thread address
# Memory of threads and caches that lives as long as the process is no leak.
SANITIZER_OPTIONS := TSAN_OPTIONS="halt_on_error=0 exitcode=66" ASAN_OPTIONS="detect_leaks=0"

# Assertions are on, the order of locks among them.
sanitize: deps test-deps ## the server under Thread and Address Sanitizer: ingest, delivery, recording, replay, restarts, kills (80 minutes)
	for sanitizer in $(SANITIZERS); do \
	  echo "the server under $$sanitizer sanitizer"; \
	  WEIR_SANITIZER=$$sanitizer $(SWIFT) build -c release --sanitize=$$sanitizer -Xswiftc -assert-config -Xswiftc Debug \
	    --scratch-path .build/sanitize-$$sanitizer --product weir; \
	  $(SANITIZER_OPTIONS) WEIR_SANITIZER=$$sanitizer WEIR_BIN="$(abspath .build/sanitize-$$sanitizer/release/weir)" \
	    $(PYTHON) -m pytest $(addprefix Tests/EndToEndTests/,$(SANITIZED)) $(ARGS); \
	done

# Built scripts of players, from outside of this repository: a player whose script is missing is skipped, and named.
HLSJS ?=
DASHJS ?=
SHAKAJS ?=

players: check test-deps ## real players on each shape of stream, HLSJS= DASHJS= SHAKAJS= name their scripts (65 minutes)
	@.ci/install-packages "the players" mpv
	PYTHONPATH="$(HARNESS):$(HARNESS)/browser" HLSJS="$(HLSJS)" DASHJS="$(DASHJS)" SHAKAJS="$(SHAKAJS)" WEIR_BIN="$(TESTED_BIN)" \
	  $(PYTHON) Tests/Players --report .build/players.json $(ARGS)

bench: build bench-deps test-deps ## speed, side by side with ffmpeg and nginx
	PYTHONPATH="$(HARNESS):$(HARNESS)/browser" WEIR_BIN="$(abspath $(BIN))" $(PYTHON) Benchmarks/run.py $(ARGS)

# The same build with exclusivity checks, which are on where nothing turns them off.
CHECKED_RELEASE := $(filter-out -Xswiftc -enforce-exclusivity=unchecked,$(RELEASE)) --scratch-path .build/exclusive

exclusivity: build bench-deps test-deps ## what exclusivity checks would cost: two builds side by side (15 minutes when built)
	$(SWIFT) build $(CHECKED_RELEASE) --product weir
	PYTHONPATH="$(HARNESS):$(HARNESS)/browser" WEIR_BIN="$(abspath $(BIN))" WEIR_CHECKED="$$($(SWIFT) build $(CHECKED_RELEASE) --show-bin-path)/weir" \
	  $(PYTHON) Benchmarks/run.py --only exclusivity $(ARGS)

# Remote packets can overflow older ones (CVE-2026-55868, CVE-2026-55869).
LIBSRT_LEAST := 1.5.1-1+deb12u2

deps: # system packages that the build needs
	@.ci/install-packages "the build" $(BUILD_PACKAGES)
	@found=$$(dpkg-query -W -f '$${Version}' libsrt-gnutls-dev); dpkg --compare-versions "$$found" ge "$(LIBSRT_LEAST)" || { \
	  echo "error: libsrt-gnutls-dev is $$found: apt-get update, then install $(LIBSRT_LEAST) or newer" >&2; exit 1; }
	@command -v $(SWIFT) >/dev/null || { \
	  echo "error: there is no $(SWIFT) on PATH ($$PATH): install Swift 6.3 or newer from https://www.swift.org/install/ and put" \
	    "it first on PATH; under sudo PATH is another one: build without it" >&2; exit 1; }
	@$(SWIFT) --version 2>/dev/null | grep -qE 'Swift version (6\.[3-9]|6\.[1-9][0-9]|[7-9])' || { \
	  echo "error: $(SWIFT) is no Swift 6.3 or newer: install it from https://www.swift.org/install/ and put it first on PATH" >&2; \
	  exit 1; }

all-deps: deps test-deps # what `make test` needs
	@.ci/install-packages "the checks and pages" $(CHECK_PACKAGES) $(WEB_PACKAGES)
	@.ci/install-packages "the short device test" $(SHORT_DEVICE_PACKAGES) || true

pack-deps: # packages that packing needs
	@.ci/install-packages "packing" $(PACK_PACKAGES)

test-deps: .venv/ready # packages and Python modules that the end-to-end tests need
	@.ci/install-packages "the tests" $(TEST_PACKAGES)

bench-deps: # packages that the benchmarks compare with
	@.ci/install-packages "the benchmarks" $(BENCH_PACKAGES)

.venv/ready: Tests/EndToEndTests/requirements.txt
	@.ci/install-packages "the tests" $(TEST_PACKAGES)
	python3 -m venv .venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

clean: ## remove everything that was built here
	rm -rf .build .venv out

clean-cache: ## remove the compiled dependencies that checkouts share (.ci/scratch)
	cache="$${WEIR_CACHE-$${XDG_CACHE_HOME:-$$HOME/.cache}/weir}"; [ ! -d "$$cache" ] || \
	  find "$$cache" -mindepth 1 -maxdepth 1 -type d -regextype posix-extended -regex '.*/[a-z]+-[0-9a-f]{12}' -exec rm -rf {} +
