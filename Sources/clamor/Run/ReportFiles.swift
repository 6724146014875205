import Measurement
import Report

extension ReportFileOptions {
    /// Why a file could not be written at the end, to be asked before the start.
    var problem: String? {
        if let path = self.junit, let reason = ReportFile.problem(path) { return "--junit \(path): \(reason)" }
        if let path = self.markdown, let reason = ReportFile.problem(path) { return "--summary-md \(path): \(reason)" }
        return nil
    }

    /// Writes what was asked for; returns what went wrong.
    func write(_ record: RunRecord, isStrict: Bool) -> String? {
        self.write(JUnitXML(record, isStrict: isStrict), markdown: RunMarkdown.text(record))
    }

    func write(_ junit: @autoclosure () -> JUnitXML, markdown: @autoclosure () -> String) -> String? {
        do throws(ResultError) {
            if let path = self.junit { try ReportFile.write(junit().text, to: path) }
            if let path = self.markdown { try ReportFile.append(markdown(), to: path) }
            // Of another user or container it may be; a run does not end for that.
            if let path = self.inherited { try? ReportFile.append(markdown(), to: path) }
            return nil
        } catch {
            return "\(error)"
        }
    }
}
