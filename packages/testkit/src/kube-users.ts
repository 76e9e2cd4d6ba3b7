import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Somebody whom the API server knows by a token. What they may do is up to RBAC. */
export interface KubeUser {
  /** `jane`, or `system:serviceaccount:<namespace>:<name>` to stand for a service account. */
  name: string;
  /** Default none (`system:authenticated` is added by the API server). */
  groups?: readonly string[];
}

/** The users of one API server. */
export interface KubeUsers {
  /** For `--token-auth-file`. */
  readonly tokenFile: string;
  /** @throws Error for a user who was not asked for. */
  tokenFor(name: string): string;
  /** Path of a kubeconfig that lets in that user. @throws Error as `tokenFor` does. */
  kubeconfigFor(name: string): string;
}

/** Where the API server is, for those who want to connect. */
export interface KubeEndpoint {
  url: string;
  caFile: string;
}

/** Gives each user a random token and writes the file that tells the API server, below `folder`. */
export function makeKubeUsers(users: readonly KubeUser[], folder: string, endpoint: KubeEndpoint): KubeUsers {
  const tokens = new Map(users.map(({ name }) => [name, randomBytes(16).toString('hex')]));
  const tokenFile = join(folder, 'tokens.csv');
  const lines = users.map(
    ({ name, groups = [] }) => `${tokens.get(name)},${name},${name},"${groups.join()}"`,
  );
  writeFileSync(tokenFile, `${lines.join('\n')}\n`, { mode: 0o600 });

  function tokenFor(name: string): string {
    const token = tokens.get(name);
    if (token === undefined) throw new Error(`no user ${name}: name it in startKubeApiserver({ users })`);
    return token;
  }

  return {
    tokenFile,
    tokenFor,
    kubeconfigFor(name) {
      // Names of service accounts have colons: not everybody's idea of a file name.
      const file = join(folder, `kubeconfig-${encodeURIComponent(name)}`);
      writeFileSync(file, kubeconfig(endpoint, tokenFor(name)), { mode: 0o600 });
      return file;
    },
  };
}

/** JSON is YAML. */
function kubeconfig({ url, caFile }: KubeEndpoint, token: string): string {
  const named = 'test';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: named, cluster: { server: url, 'certificate-authority': caFile } }],
    users: [{ name: named, user: { token } }],
    contexts: [{ name: named, context: { cluster: named, user: named } }],
    'current-context': named,
  });
}
