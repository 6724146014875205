/// Metrics of watched servers, whose labels have values that are known only at run time.
package enum ObservedMetrics {
    /// The labels of each, by its name.
    package static let labels: [String: [String]] = [
        "server_cpu": ["process"],
        "server_cpu_time": ["process"],
        "server_thread_cpu": ["process", "thread"],
        "server_memory_bytes": ["process"],
        "server_memory_idle_bytes": ["process"],
        "server_descriptors": ["process"],
        "server_cpu_per_message": [],
        "server_memory_per_connection": [],
        "server_metric": ["series", "of", "page"],
        "server_sys": ["topic"],
    ]
}
