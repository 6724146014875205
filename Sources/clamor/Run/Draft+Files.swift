import Foundation
import RunControl
import RunResult
import Scenario

extension Draft {
    /// Writes the files; if one of them exists, none is written.
    func write(_ screen: ProgressScreen) -> ExitStatus {
        if self.path == "-" {
            screen.write(self.text)
            return .success
        }
        // A file with this very text stays; the workflow of a second build server comes beside it.
        let new = self.files.filter { FileManager.default.contents(atPath: $0.path) != Data($0.text.utf8) }
        let isThere = self.files.first { FileManager.default.fileExists(atPath: $0.path) }
        if let file = new.isEmpty ? isThere : new.first(where: { FileManager.default.fileExists(atPath: $0.path) }) {
            return self.refuse(file, "it is there already; move it away, or name another file with --out", screen)
        }
        for file in new {
            let url = URL(filePath: file.path)
            do {
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                let mode: mode_t = file.isSecret ? 0o600 : 0o666
                let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
                guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
                try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: Data(file.text.utf8))
            } catch {
                return self.refuse(file, "check its directory", screen)
            }
        }
        let isShort = self.files.count <= 2
        let paths = isShort ? self.files.map(\.path).joined(separator: " and ") : "\(self.files.count) files"
        screen.show("wrote \(paths)\(self.next.isEmpty ? "" : "; \(self.next)")\n")
        return .success
    }

    private func refuse(_ file: File, _ remedy: String, _ screen: ProgressScreen) -> ExitStatus {
        screen.warn("init: cannot write \(file.path): \(remedy)")
        return .cannotCreate
    }
}
