package import Foundation

extension JSONDecoder {
    /// Reads the key `limited_by` as the member `limitedBy`.
    package static var snakeCase: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }
}
