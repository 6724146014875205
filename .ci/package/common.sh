# shellcheck shell=bash disable=SC2034 # others read the variables
# For the other scripts here, which read it: names, version and folders, and the check of a program. They run from the
# root of the repository.
set -euo pipefail
# What packages hold is for all to read.
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dist=$PWD/.build/dist
version=$(sed -nE 's/.* static let number = "(.*)"/\1/p' Sources/RunControl/Version.swift)
case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) arch=$(uname -m) ;;
esac
tarball=$dist/clamor-$version-linux-$arch.tar.gz
deb=$dist/clamor_${version}_$arch.deb
image=$dist/clamor-$version-image-$arch.tar.gz
sbom=$dist/clamor-$version-linux-$arch.spdx.json
# Of archives and manual pages: the same sources make the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Sources/RunControl/Version.swift)}
export SOURCE_DATE_EPOCH
export LC_ALL=C.UTF-8

fail() {
    echo "$1" >&2
    exit 1
}

# Tries a program: check NAME COMMAND. The command runs it, in a folder that it may write to.
check() {
    local name=$1 output attempt status
    shift
    local run=("$@" pubsub -h embedded -c 100 --duration 3s --no-tty)
    # In closed loop the verdict depends on which of generator and broker fills its core first.
    "${run[@]}" --out "$name" || fail "$name: exit code $?"
    # At a rate that any host carries the run has to be valid; one that the host disturbed (98) is repeated.
    for attempt in 1 2 3 4 5; do
        status=0
        output=$("${run[@]}" --out "$name-rate-$attempt" --rate 1000/s --strict) || status=$?
        [ "$status" = 98 ] || break
    done
    echo "$output"
    [ "$status" = 0 ] || fail "$name: no valid run; exit code $status"
    grep -q '^VALID' <<<"$output" || fail "$name: the run is not valid"
}
