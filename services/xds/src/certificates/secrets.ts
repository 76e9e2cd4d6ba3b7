import { type ApiClient, requireRecord } from '../kube/client.ts';
import { type ObjectName, secrets } from '../kube/resources.ts';
import type { KeyPair } from './authorities.ts';

export interface StoredSecret {
  /** Decoded; empty when the Secret does not exist. */
  readonly data: Readonly<Partial<Record<string, string>>>;
  /** Undefined when the Secret does not exist. */
  readonly resourceVersion: string | undefined;
}

const timeoutMs = 10_000;

export async function readSecret(
  api: ApiClient,
  name: ObjectName,
  signal: AbortSignal,
): Promise<StoredSecret> {
  const found = await api.get(secrets, name, { timeoutMs, signal });
  if (found === undefined) return { data: {}, resourceVersion: undefined };
  const manifest = requireRecord(found, 'Secret');
  const { resourceVersion } = requireRecord(manifest.metadata, 'metadata');
  const data = Object.entries(requireRecord(manifest.data ?? {}, 'Secret: data'));
  return {
    resourceVersion: String(resourceVersion),
    data: Object.fromEntries(
      data.map(([key, text]) => [key, Buffer.from(String(text), 'base64').toString('utf8')]),
    ),
  };
}

/**
 * Writes the keys that differ from what was read; undefined removes a key. Other keys are
 * preserved.
 *
 * @throws ApiError 409 when the Secret has changed or was created since.
 */
export async function writeSecret(
  api: ApiClient,
  name: ObjectName,
  {
    stored,
    data,
    signal,
  }: {
    readonly stored: StoredSecret;
    readonly data: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const changed = Object.entries(data).filter(([key, text]) => stored.data[key] !== text);
  if (changed.length === 0) return;
  const encoded = Object.fromEntries(
    changed.map(([key, text]) => [key, text === undefined ? null : Buffer.from(text).toString('base64')]),
  );
  const { resourceVersion } = stored;
  if (resourceVersion === undefined) {
    const present = Object.fromEntries(Object.entries(encoded).filter(([, text]) => text !== null));
    const metadata = { ...name, labels: { 'app.kubernetes.io/part-of': 'tollgate' } };
    await api.create(secrets, { metadata, data: present }, { timeoutMs, signal });
    return;
  }
  const body = { metadata: { resourceVersion }, data: encoded };
  await api.mergePatch(secrets, name, { body, timeoutMs, signal });
}

/** `<prefix>.crt` and `<prefix>.key`; undefined when either is missing. */
export function getKeyPair(data: StoredSecret['data'], prefix: string): KeyPair | undefined {
  const cert = data[`${prefix}.crt`] ?? '';
  const key = data[`${prefix}.key`] ?? '';
  return cert === '' || key === '' ? undefined : { cert, key };
}
