import Measurement
import Report
import RunResult

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

extension ProgressScreen {
    /// Shows a finished run, and writes the files beside its results.
    ///
    /// - Parameters:
    ///   - record: of the run.
    ///   - files: where its results are; `nil` where they could not be written.
    ///   - reports: what else is written of it.
    ///   - isStrict: `--strict`.
    ///   - remarks: lines for standard error after the summary.
    /// - Returns: how the program ends.
    func show(
        _ record: RunRecord,
        _ files: String?,
        _ reports: ReportFileOptions,
        isStrict: Bool,
        remarks: [String] = []
    ) -> ExitStatus {
        if self.isJSON {
            if let text = try? RunJSON.text(record) { self.write(text) }
        } else {
            self.show(Summary(record, files: files, style: self.style).text)
        }
        for line in remarks { self.warn(line) }
        let problem = reports.write(record, isStrict: isStrict)
        if let problem { self.warn(problem) }
        let status = ExitStatus(of: record, isStrict: isStrict, isWritten: files != nil && problem == nil)
        if let line = status.lastWord(of: record) { self.warn(line) }
        return status
    }
}
