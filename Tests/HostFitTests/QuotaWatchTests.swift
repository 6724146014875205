import HostFit
import Synchronization
import Testing

@Suite("How long a CPU quota stopped this process")
struct QuotaWatchTests {
    /// Files whose text may change.
    final class Files: Sendable {
        private let texts: Mutex<[String: String]>

        init(_ texts: [String: String]) { self.texts = Mutex(texts) }

        subscript(path: String) -> String? {
            get { self.texts.withLock { $0[path] } }
            set { self.texts.withLock { $0[path] = newValue } }
        }
    }

    @Test("version 2 counts microseconds, and of a group and those above it the longest counts")
    func second() {
        let files = Files([
            "/proc/self/cgroup": "0::/pod/box\n",
            "/sys/fs/cgroup/pod/box/cpu.stat": "usage_usec 9\nnr_throttled 3\nthrottled_usec 1000\n",
            "/sys/fs/cgroup/pod/cpu.stat": "usage_usec 9\nnr_throttled 3\nthrottled_usec 5000\n",
            // That of the root has no quota.
            "/sys/fs/cgroup/cpu.stat": "usage_usec 9\n",
        ])
        var watch = QuotaWatch { files[$0] }
        #expect(watch.take() == 0)
        files["/sys/fs/cgroup/pod/box/cpu.stat"] = "throttled_usec 1200\n"
        files["/sys/fs/cgroup/pod/cpu.stat"] = "throttled_usec 5100\n"
        #expect(watch.take() == 200_000)
        #expect(watch.take() == 0)
    }

    @Test("version 1 counts nanoseconds")
    func first() {
        let files = Files([
            "/proc/self/cgroup": "4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n",
            "/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat": "nr_periods 7\nnr_throttled 2\nthrottled_time 70\n",
            "/sys/fs/cgroup/memory/a/cpu.stat": "throttled_time 1\n",
        ])
        var watch = QuotaWatch { files[$0] }
        files["/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat"] = "nr_periods 9\nnr_throttled 4\nthrottled_time 95\n"
        files["/sys/fs/cgroup/memory/a/cpu.stat"] = "throttled_time 1000\n"
        #expect(watch.take() == 25)
    }

    @Test(
        "nothing is known of groups that do not count it",
        arguments: [
            [:], ["/proc/self/cgroup": "0::/\n"],
            ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.stat": "usage_usec 5\n"],
        ]
    )
    func unknown(_ files: [String: String]) {
        var watch = QuotaWatch { files[$0] }
        #expect(watch.take() == nil)
    }
}
