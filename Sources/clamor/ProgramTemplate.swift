import Mustache

/// A template in the program.
enum ProgramTemplate {
    static func text(_ template: [UInt8], _ values: [String: Any]) -> String {
        guard let template = try? MustacheTemplate(string: String(decoding: template, as: UTF8.self)) else {
            preconditionFailure("a template of the program can be read")
        }
        return template.render(values)
    }
}
