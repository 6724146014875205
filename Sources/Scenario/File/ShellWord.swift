/// A word of a command line as a shell takes it.
enum ShellWord {
    static func quoted(_ word: String) -> String {
        let isPlain = word.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "_./%+-@:=,".contains($0))
        }
        return isPlain && !word.isEmpty ? word : "'\(word.replacing("'", with: #"'\''"#))'"
    }
}
