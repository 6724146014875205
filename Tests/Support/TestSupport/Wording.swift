/// Checks that a text was written for people, and is not how Swift prints a value.
package enum Wording {
    /// The part of `text` that looks like printed Swift; `nil` for a text of at least two plain words.
    ///
    /// Found are a name joined to a parenthesis (`tooLong(5)`), a qualified name (`MQTTCodec.PacketType`), a word in
    /// camelCase, and a single word, which is how a case without values is printed.
    package static func swift(in text: String) -> Substring? {
        if let word = text.firstMatch(of: /[A-Za-z0-9_]+\(/) { return word.0 }
        if let word = text.firstMatch(of: /\b[A-Z][A-Za-z0-9]*\.[A-Za-z]+/) { return word.0 }
        if let word = text.firstMatch(of: /\b[a-z]+[A-Z][A-Za-z0-9]*/) { return word.0 }
        return text.split(separator: " ").count < 2 ? text[...] : nil
    }
}
