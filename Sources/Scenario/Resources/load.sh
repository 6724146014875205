# The load test of this repository: bash load.sh fetch && bash load.sh build && bash load.sh run
# From the environment: CLAMOR_GIT and CLAMOR_REF, SCENARIO, BRANCH, COMMIT, TARGET, the server of this build, and BASE,
# that of the build before it.
set -eu -o pipefail
PATH="$PWD/clamor/.build/release:$PATH"
: "${SCENARIO:=fleet.yaml}" "${TARGET:=mqtt://127.0.0.1:1884}" "${BRANCH:=}"

load() {
    rm -rf load
    clamor run "$SCENARIO" --strict --junit load.xml --out load --set "TARGET=$TARGET" "$@"
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
    # Each run has the build in its title; those of main are kept.
    set -- ${COMMIT:+--tag "commit=$COMMIT"}
    [ "$BRANCH" != main ] || set -- "$@" --history history
    # 98: the runner was the limit, so the run says nothing about the server. One more try.
    load "$@" || { status=$?; [ "$status" = 98 ] || exit "$status"; load "$@"; }
    status=0
    if [ "$BRANCH" != main ] && [ -n "${BASE-}" ]; then
        # Both builds on this runner, in turn, until one is worse, or no difference is left.
        rm -rf ab
        clamor run "$SCENARIO" --set "TARGET=$BASE" --against "TARGET=$TARGET" --until-decided --max 10m \
            --out ab --junit ab.xml || status=$?
        # Sides that cannot be compared, as after a change of the scenario.
        [ "$status" != 65 ] || status=0
    elif [ "$BRANCH" != main ]; then
        echo "BASE is not set, so this build is not compared with the one before it." >&2
    fi
    if [ -d history ]; then
        # What changed on main within two weeks. It takes three runs at least to show, so a branch fails by none of it.
        if [ "$BRANCH" = main ]; then runs=history; else runs='history load'; fi
        since=$(date -u -d '14 days ago' +%F)
        clamor trend $runs --gate --since "$since" --junit trend.xml --html trend.html ||
            { found=$?; [ "$BRANCH" != main ] || status=$found; }
    fi
    exit "$status"
    ;;
*)
    echo "usage: bash load.sh fetch|build|run" >&2
    exit 64
    ;;
esac
