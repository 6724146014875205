extension LiveClient {
    /// Reports of the modules, in words.
    final class Heard {
        private(set) var lines: [String] = []
        var changed: () -> Void = {}

        func note(_ line: String) {
            self.lines.append(line)
            self.changed()
        }
    }
}
