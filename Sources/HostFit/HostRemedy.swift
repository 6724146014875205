/// A remedy for a check that a load does not pass; several of one check are alternatives.
package enum HostRemedy: Hashable, Sendable {
    // The load.
    case fewerClients
    case lowerRate
    case slowerConnects
    case moreSourceAddresses
    case split(LoadSplit)
    case severalMachines

    // Event loops of this process.
    case moreThreads
    case fewerThreads(Int)

    // Limits of the kernel.
    /// The descriptors of a process; `most`: fs.nr_open, where that has to be raised before.
    case raiseDescriptors(to: Int, most: Bool)
    case raiseOpenFiles
    case widenPortRange
    /// Until ports in TIME_WAIT are free; `reuse`: how long with net.ipv4.tcp_tw_reuse=1.
    case waitForTimeWait(seconds: Int, reuse: Int?)
    case raiseBacklog
    case raiseTracking(to: UInt64)
    /// Pages of TCP buffers: net.ipv4.tcp_mem.
    case raiseBuffers(low: UInt64, pressure: UInt64, most: UInt64)
    case raiseQuota

    // The machine.
    case fastClock
    case quieterHost
    case noSwap
}

/// How a load can be divided.
package enum LoadSplit: Hashable, Sendable {
    /// Over so many processes on this host.
    case processes(Int)
    /// Into so many segments, which are started one by one.
    case segments(Int)
}
