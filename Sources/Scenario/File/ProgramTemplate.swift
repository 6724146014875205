import Mustache

package enum ProgramTemplate {
    package static func text(_ template: [UInt8], _ values: [String: Any]) -> String {
        guard let template = try? MustacheTemplate(string: String(decoding: template, as: UTF8.self)) else {
            preconditionFailure("a template of the program can be read")
        }
        return template.render(values)
    }
}
