// LoadEngine
