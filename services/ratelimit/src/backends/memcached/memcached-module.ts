import type { BackendModule } from '../backend-module.ts';

/** BACKEND_TYPE=memcache. */
export const memcachedBackend: BackendModule = {
  create: () => Promise.reject(new TypeError('BACKEND_TYPE=memcache is not served yet')),
};
