import type { SetOutcome, TokenRecord, TokenStore } from './token-store.ts';

const conflict: SetOutcome = { ok: false, reason: 'conflict' };

/** A store that several managers of one process can share; gone with the process. Records are copied in and out. */
export function memoryTokenStore(): TokenStore {
  const records = new Map<string, { json: string; version: string }>();
  let lastVersion = 0;

  return {
    get(key) {
      const entry = records.get(key);
      if (entry === undefined) return Promise.resolve(undefined);
      // What this store wrote itself needs no check.
      const record = JSON.parse(entry.json) as TokenRecord;
      return Promise.resolve({ record, version: entry.version });
    },
    set(key, record, expectedVersion) {
      if (records.get(key)?.version !== expectedVersion) return Promise.resolve(conflict);
      lastVersion += 1;
      const version = String(lastVersion);
      records.set(key, { json: JSON.stringify(record), version });
      return Promise.resolve({ ok: true, version });
    },
  };
}
