# The load test of this repository: bash load.sh fetch && bash load.sh build && bash load.sh run
# From the environment: CLAMOR_GIT and CLAMOR_REF, SCENARIO, TARGET, BRANCH, and RUN, which increases from run to run.
set -eu -o pipefail
PATH="$PWD/clamor/.build/release:$PATH"

load() {
    rm -rf load
    clamor run "${SCENARIO:-fleet.yaml}" --strict --junit load.xml --out load \
        --set "TARGET=${TARGET:-mqtt://127.0.0.1:1884}"
}

case ${1-} in
fetch)
    : "${CLAMOR_GIT:?set it to the URL of the Git repository of Clamor, in the variables of CI}"
    git init -q clamor
    git -C clamor fetch -q --depth 1 "$CLAMOR_GIT" "${CLAMOR_REF:-HEAD}"
    git -C clamor checkout -q FETCH_HEAD
    git -C clamor rev-parse HEAD > clamor.revision
    ;;
build)
    # A cache may hold the build of this revision.
    if ! cmp -s clamor.revision clamor/.build/revision; then
        make -C clamor build
        cp clamor.revision clamor/.build/revision
    fi
    ;;
run)
    # 98: the runner was the limit, so the run says nothing about the server. One more try.
    load || { status=$?; [ "$status" = 98 ] || exit "$status"; load; }
    status=0
    if [ -d baseline ]; then
        # Runners differ, so the limit is wide.
        clamor compare baseline load --allow-different cpu --max-regression 'delivery_duration p50 50%' \
            --junit compare.xml --html compare.html || status=$?
        clamor report baseline/* load --html trend.html || true
    fi
    if [ "${BRANCH-}" = main ]; then
        # The last ten runs. What main has accepted is the measure of the next change.
        mkdir -p baseline
        rm -rf "baseline/${RUN:=0}"
        cp -r load "baseline/$RUN"
        (cd baseline; find . -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | head -n -10 | xargs -r rm -r)
    elif [ "$status" != 65 ]; then
        exit "$status"
    else
        echo "This run and the baseline are no comparison; the lines above say why." >&2
    fi
    ;;
*)
    echo "usage: bash load.sh fetch|build|run" >&2
    exit 64
    ;;
esac
