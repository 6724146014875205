public import XMPPCodec

/// A form: fields that an entity wants to be filled in, or that it has filled in.
///
/// Spec: XEP-0004.
public struct XMPPDataForm: Hashable, Sendable {
    /// The purpose of a form (§3.1).
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Asks to be filled in.
        case form
        /// Is filled in.
        case submit
        /// Will not be filled in.
        case cancel
        /// Reports data.
        case result
    }

    /// A field of a form.
    public struct Field: Hashable, Sendable {
        /// The type of a field's values (§3.3).
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// `true`, `1`, `false` or `0`.
            case boolean
            /// Text for people that is not filled in.
            case fixed
            /// A value that is not shown to people, and returned as it is.
            case hidden
            /// Any number of addresses.
            case jidMulti = "jid-multi"
            /// An address.
            case jidSingle = "jid-single"
            /// Any number of the options.
            case listMulti = "list-multi"
            /// One of the options.
            case listSingle = "list-single"
            /// Lines of text, a value each.
            case textMulti = "text-multi"
            /// A line of text that is not shown, such as a password.
            case textPrivate = "text-private"
            /// A line of text.
            case textSingle = "text-single"
        }

        /// A value to choose.
        public struct Option: Hashable, Sendable {
            /// For people.
            public var label: String?
            /// The value that stands for it.
            public var value: String

            /// A value to choose, with a label for people.
            public init(_ value: String, label: String? = nil) {
                self.label = label
                self.value = value
            }
        }

        /// The field's name, `var` on the wire; `nil` for text that stands between fields.
        public var name: String?
        /// `nil` if the form does not say, which stands for ``Kind/textSingle``, or for an unknown type.
        public var kind: Kind?
        /// For people.
        public var label: String?
        /// Instructions for people about the field.
        public var explanation: String?
        /// Whether a form without a value here is refused.
        public var isRequired: Bool
        /// The values so far: those given, or the default.
        public var values: [String]
        /// The values to choose from.
        public var options: [Option]

        /// A field with its values.
        public init(
            _ name: String?,
            _ values: [String] = [],
            kind: Kind? = nil,
            label: String? = nil,
            explanation: String? = nil,
            isRequired: Bool = false,
            options: [Option] = []
        ) {
            self.name = name
            self.kind = kind
            self.label = label
            self.explanation = explanation
            self.isRequired = isRequired
            self.values = values
            self.options = options
        }

        /// The first value; `nil` without one.
        public var value: String? { self.values.first }

        /// The first value as a truth value; `nil` without one, or if it is none.
        public var bool: Bool? {
            switch self.value {
            case "1", "true": true
            case "0", "false": false
            default: nil
            }
        }
    }

    /// The purpose.
    public var kind: Kind
    /// For people.
    public var title: String?
    /// Instructions for people, a text each.
    public var instructions: [String]
    /// The fields in their order.
    public var fields: [Field]

    /// A form with these fields.
    public init(_ kind: Kind, title: String? = nil, instructions: [String] = [], fields: [Field] = []) {
        self.kind = kind
        self.title = title
        self.instructions = instructions
        self.fields = fields
    }

    /// Makes a form that is filled in.
    ///
    /// - Parameters:
    ///   - type: names the fields' meaning, as a hidden field `FORM_TYPE` (XEP-0068).
    ///   - values: the value of each field by its name; `nil` leaves a field out.
    /// - Returns: the form, of kind ``Kind/submit``.
    public static func submit(_ type: String? = nil, _ values: KeyValuePairs<String, String?> = [:]) -> XMPPDataForm {
        var form = XMPPDataForm(.submit)
        if let type { form.fields.append(Field("FORM_TYPE", [type], kind: .hidden)) }
        for case (let name, let value?) in values { form.fields.append(Field(name, [value])) }
        return form
    }

    /// Reads `<x xmlns='jabber:x:data'/>`; `nil` for everything else.
    ///
    /// A form without a known type counts as a ``Kind/form``.
    public init?(_ element: XMPPElement) {
        guard element.isNamed("x", XMPPNamespace.dataForms) else { return nil }
        self.init(element["type"].flatMap { Kind(rawValue: $0) } ?? .form)
        for child in element.elements where child.namespace == XMPPNamespace.dataForms {
            switch child.name {
            case "title": self.title = child.text
            case "instructions": self.instructions.append(child.text)
            case "field": self.fields.append(Field(child))
            default: break
            }
        }
    }

    /// The field of this name.
    public subscript(name: String) -> Field? { self.fields.first { $0.name == name } }

    /// The value of `FORM_TYPE` (XEP-0068), which names the meaning of the fields.
    public var type: String? { self["FORM_TYPE"]?.value }

    /// Names of required fields without a value.
    public var missing: [String] { self.fields.filter { $0.isRequired && $0.values.isEmpty }.compactMap(\.name) }

    /// Fills the form in.
    ///
    /// - Parameter values: the values of each field by its name, also of fields that the form does not have.
    /// - Returns: the form with these values, and for other fields those that it came with (§3.3).
    public func filled(_ values: [String: [String]]) -> XMPPDataForm {
        var form = XMPPDataForm(.submit)
        var left = values
        for field in self.fields where field.kind != .fixed {
            guard let name = field.name else { continue }
            let given = left.removeValue(forKey: name)
            guard given != nil || !field.values.isEmpty else { continue }
            form.fields.append(Field(name, given ?? field.values, kind: field.kind == .hidden ? .hidden : nil))
        }
        for (name, values) in left.sorted(by: { $0.key < $1.key }) { form.fields.append(Field(name, values)) }
        return form
    }

    /// `<x xmlns='jabber:x:data'/>`.
    public var element: XMPPElement {
        var x = XMPPElement("x", namespace: XMPPNamespace.dataForms, attributes: ["type": self.kind.rawValue])
        x.add("title", text: self.title)
        for text in self.instructions { x.add("instructions", text: text) }
        for field in self.fields { x.add(field.element) }
        return x
    }

    /// Bytes that it takes in memory, or so.
    package var estimatedSize: Int {
        self.fields.reduce(128 + Self.size(self.title) + Self.size(self.instructions)) { sum, field in
            let texts = Self.size(field.name) + Self.size(field.label) + Self.size(field.explanation)
            let options = field.options.reduce(0) { $0 + 32 + Self.size($1.label) + $1.value.utf8.count }
            return sum + 128 + texts + Self.size(field.values) + options
        }
    }

    private static func size(_ text: String?) -> Int { text?.utf8.count ?? 0 }
    private static func size(_ texts: [String]) -> Int { texts.reduce(0) { $0 + 16 + $1.utf8.count } }
}

extension XMPPDataForm.Field {
    fileprivate init(_ element: XMPPElement) {
        self.init(element["var"], kind: element["type"].flatMap { Kind(rawValue: $0) }, label: element["label"])
        for child in element.elements where child.namespace == XMPPNamespace.dataForms {
            switch child.name {
            case "value": self.values.append(child.text)
            case "required": self.isRequired = true
            case "desc": self.explanation = child.text
            case "option":
                guard let value = child.child("value", XMPPNamespace.dataForms)?.text else { continue }
                self.options.append(Option(value, label: child["label"]))
            default: break
            }
        }
    }

    fileprivate var element: XMPPElement {
        let namespace = XMPPNamespace.dataForms
        var field = XMPPElement(
            "field",
            namespace: namespace,
            attributes: ["var": self.name, "type": self.kind?.rawValue, "label": self.label]
        )
        field.add("desc", text: self.explanation)
        if self.isRequired { field.add(XMPPElement("required", namespace: namespace)) }
        for value in self.values { field.add("value", text: value) }
        for option in self.options {
            var element = XMPPElement("option", namespace: namespace, attributes: ["label": option.label])
            element.add("value", text: option.value)
            field.add(element)
        }
        return field
    }
}
