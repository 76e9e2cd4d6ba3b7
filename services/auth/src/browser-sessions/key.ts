import { createHmac, hkdfSync } from 'node:crypto';
import type { Settings } from '../config/settings.ts';

type KeySettings = Pick<Settings, 'jwtSecret'>;

const keyBytes = 32;
/** Derived once per settings. */
const keys = new WeakMap<KeySettings, Buffer>();

/** The key that all replicas share, and that signs nothing else. */
function findKey(settings: KeySettings): Buffer {
  const known = keys.get(settings);
  if (known !== undefined) return known;
  const info = 'tollgate browser sessions';
  const key = Buffer.from(hkdfSync('sha256', settings.jwtSecret, Buffer.alloc(0), info, keyBytes));
  keys.set(settings, key);
  return key;
}

/** The signature of a text for one purpose, in base64url. */
export function sign(purpose: string, text: string, settings: KeySettings): string {
  return createHmac('sha256', findKey(settings)).update(`${purpose} ${text}`).digest('base64url');
}
