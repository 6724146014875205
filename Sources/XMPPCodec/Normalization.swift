/// Normalization Form C: equal texts are the same characters.
///
/// The standard library has the form, since it compares strings by it, and gives it out as bytes of UTF-8 alone.
///
/// Spec: Unicode Standard Annex #15.
package enum Normalization {
    package static func composed(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        // Characters below the first combining mark neither compose nor decompose.
        if scalars.allSatisfy({ $0.value < 0x300 }) { return scalars }
        let text = String(String.UnicodeScalarView(scalars))
        return Array(String(decoding: text._nfcCodeUnits, as: UTF8.self).unicodeScalars)
    }
}
