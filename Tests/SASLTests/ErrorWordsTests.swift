import SASL
import Testing
import TestSupport

@Suite("Errors of SASL in words")
struct ErrorWordsTests {
    private static let errors: [SASLError] = [
        .malformed("no nonce"), .serverNotVerified, .refused("other-error"), .iterations(1, allowed: 2...3),
        .iterations(4, allowed: 2...3), .credentials("two words"),
    ]
    private static let choices: [SASLChoiceError] =
        [
            .nothingOffered, .noneShared(offered: ["X"]), .notOffered("X", offered: []), .unknown("X"),
            .plainWithoutTLS, .noPassword("X"), .noBinding(offered: ["X"]), .bindingStripped(["X"]),
            .bindingTypesStripped,
        ] + errors.map { .credentials($0) }
    private static let all: [any Error] =
        errors.map { $0 as any Error } + choices.map { $0 as any Error }
        + SCRAMServerError.allCases.map { $0 as any Error }

    /// Does not compile with a case that the lists above lack.
    private static func isListed(_ error: any Error) -> Bool {
        switch error {
        case let error as SASLError:
            switch error {
            case .malformed, .serverNotVerified, .refused, .iterations, .credentials: true
            }
        case let error as SASLChoiceError:
            switch error {
            case .nothingOffered, .noneShared, .notOffered, .unknown, .plainWithoutTLS, .noPassword, .noBinding,
                .bindingStripped, .bindingTypesStripped, .credentials:
                true
            }
        default: error is SCRAMServerError
        }
    }

    @Test("every case is words for people", arguments: all)
    func words(_ error: any Error) {
        #expect(Self.isListed(error))
        #expect(Wording.swift(in: "\(error)") == nil, "\(error)")
    }

    @Test("a character that cannot be prepared is named by its code point")
    func preparation() {
        let error = #expect(throws: SASLPrep.Refusal.self) { try SASLPrep.prepare("a\u{7}", as: .name) }
        #expect(error.map { "\($0)" } == "the character U+0007 is prohibited")
    }
}
