// Memory that an object of an event loop owns: an exclusivity check of a class's property costs as much as a message.
extension UnsafeMutablePointer where Pointee: ~Copyable {
    /// Memory with one value, which ``destroy(_:)`` ends.
    static func make(_ value: consuming Pointee) -> UnsafeMutablePointer<Pointee> {
        let memory = UnsafeMutablePointer<Pointee>.allocate(capacity: 1)
        memory.initialize(to: value)
        return memory
    }

    /// Ends the values and frees the memory.
    func destroy(_ count: Int = 1) {
        self.deinitialize(count: count)
        self.deallocate()
    }
}
