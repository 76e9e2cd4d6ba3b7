import { formatYaml } from '@tollgate/yaml/documents';
import { CommandFailure } from '../failure.ts';

export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

/** The key of the Secret that the chart mounts (`jwtKeys.existingSecret`). */
const secretKey = 'keys.json';

/** @throws CommandFailure */
export function parseSecretName(text: string): SecretName {
  const [, namespace = '', name = ''] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/.exec(text) ?? [];
  if (name === '') throw new CommandFailure('--secret must be <namespace>/<name>');
  return { namespace, name };
}

export function toSecretManifest({ namespace, name }: SecretName, keys: string): string {
  const data = { [secretKey]: Buffer.from(keys).toString('base64') };
  const manifest = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name }, type: 'Opaque', data };
  return formatYaml(manifest);
}
