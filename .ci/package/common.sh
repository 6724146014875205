# shellcheck shell=bash disable=SC2034 # others read the variables
# For the other scripts here, which read it: names, version and folders. Run from the root of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dist=$PWD/.build/dist
version=$(sed -nE 's/.* static let number = "(.*)"/\1/p' Sources/clamor/Version.swift)
case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) arch=$(uname -m) ;;
esac
# Of archives and manual pages: the same sources make the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Sources/clamor/Version.swift)}
export SOURCE_DATE_EPOCH
export LC_ALL=C.UTF-8

fail() {
    echo "$1" >&2
    exit 1
}
