import type { BackendModule } from '../backend-module.ts';
import { createMemoryBackend } from './memory-backend.ts';

/** BACKEND_TYPE=memory. */
export const memoryBackend: BackendModule = {
  create({ memoryMaxCounters }, { nowSeconds, stats }) {
    const backend = createMemoryBackend({ nowSeconds, maxCounters: memoryMaxCounters });
    stats.gauge('ratelimit.memory.counters', () => backend.figures().size);
    stats.gauge('ratelimit.memory.evicted', () => backend.figures().evicted);
    return Promise.resolve(backend);
  },
};
