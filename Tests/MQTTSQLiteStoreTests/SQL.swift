import GRDB

/// The database under the store.
enum SQL {
    static func execute(_ sql: String, in path: String) throws {
        let database = try DatabaseQueue(path: path)
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
        try database.close()
    }
}
