import { generateKeyPairSync } from 'node:crypto';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { startPostgres } from '@tollgate/testkit/postgres';
import { startRedis } from '@tollgate/testkit/redis';
import type { Test } from 'tap';
import { listObjects } from '../kubelet/node.ts';
import { forwardPort, someAddress } from './loopback.ts';

/** Kinds of others that our charts have objects of: group, version, plural. */
const kinds = {
  Certificate: ['cert-manager.io', 'v1', 'certificates'],
  HTTPRoute: ['gateway.networking.k8s.io', 'v1', 'httproutes'],
  PrometheusRule: ['monitoring.coreos.com', 'v1', 'prometheusrules'],
  ServiceMonitor: ['monitoring.coreos.com', 'v1', 'servicemonitors'],
} as const;

/** Definitions of these kinds that accept anything. */
export function applyThirdPartyKinds(kube: KubeApiserver): Promise<void> {
  const items = Object.entries(kinds).map(([kind, [group, version, plural]]) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // Groups below k8s.io want one.
    metadata: {
      name: `${plural}.${group}`,
      annotations: { 'api-approved.kubernetes.io': 'unapproved, of a test' },
    },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  }));
  return kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

/**
 * Does what cert-manager would: for each Certificate of a namespace makes the Secret that it asks
 * for.
 */
export async function issueCertificates(
  kube: KubeApiserver,
  certificates: Certificates,
  namespace: string,
): Promise<void> {
  const path = `/apis/cert-manager.io/v1/namespaces/${namespace}/certificates`;
  const secrets = (await listObjects(kube, path)).map(({ spec }) => {
    // Parsed boundary: ours.
    const { secretName, dnsNames } = spec as { secretName: string; dnsNames: readonly string[] };
    const subjectAltNames = dnsNames.map((name) => `DNS:${name}`);
    const pair = certificates.issue({ name: `${namespace}-${secretName}`, commonName: '', subjectAltNames });
    return secret(namespace, secretName, tlsFiles(certificates, pair));
  });
  if (secrets.length > 0)
    await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: secrets }));
}

export function tlsFiles(
  { ca }: Certificates,
  { cert, key }: { readonly cert: string; readonly key: string },
): Readonly<Record<string, string>> {
  return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
}

export function secret(
  namespace: string,
  name: string,
  stringData: Readonly<Record<string, string>>,
): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData };
}

/**
 * Stands in for the operator of a cluster: data stores outside it, and the Secrets that values
 * files name.
 */
export interface Operator {
  readonly certificates: Certificates;
  /** Addresses of the data stores, by the names that the values files have. */
  readonly hosts: Readonly<Record<string, string>>;
  /** Makes all Secrets in a namespace; users have a database there of their own. */
  makeSecrets(kube: KubeApiserver, namespace: string): Promise<void>;
}

/** Starts PostgreSQL, a Redis and a Redis with TLS. They are stopped when the test ends. */
export async function startOperator(t: Test): Promise<Operator> {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const database = await startPostgres();
  t.teardown(() => database.stop());
  await database.speakTls(
    certificates.issue({ name: 'postgres-tls', subjectAltNames: ['DNS:postgres-tls'] }),
  );
  const address = someAddress();
  const login = { username: 'limiter', password: 'of-a-limiter' };
  const user = [login.username, 'on', `>${login.password}`, '~*', '&*', '+@all'];
  const redis = await startRedis({ args: ['--user', ...user] });
  t.teardown(() => redis.stop());
  await forwardPort(t, { address, port: 6379, to: redis.port });
  const { certFile, keyFile } = certificates.issue({ name: 'redis-tls', subjectAltNames: ['DNS:redis-tls'] });
  const redisTls = await startRedis({
    tls: { certFile, keyFile, caFile: certificates.ca.certFile },
    args: ['--tls-auth-clients', 'no'],
  });
  t.teardown(() => redisTls.stop());

  return {
    certificates,
    hosts: { redis: address, 'redis-tls': '127.0.0.1', 'postgres-tls': '127.0.0.1' },
    async makeSecrets(kube, namespace) {
      const { url } = await database.createDatabase();
      const auth = { DATABASE_URL: url, SVC_JWT_SECRET: 'thirty-two-characters-of-a-secret' };
      const verified = url.replace(`@${database.host}:`, '@postgres-tls:');
      const pair = tlsFiles(certificates, certificates.server);
      const secrets = {
        // The name that the chart looks for, and one of its own.
        'tg-auth': auth,
        'auth-secrets': { ...auth, DATABASE_URL: `${verified}?sslmode=verify-full` },
        'postgres-ca': { 'ca.crt': certificates.ca.cert },
        database: { uri: auth.DATABASE_URL },
        jwt: { secret: auth.SVC_JWT_SECRET },
        'jwt-keys': { 'keys.json': JSON.stringify([signingKey()]) },
        'redis-url': { KVSTORE_URL: 'redis:6379' },
        'redis-tls-url': { KVSTORE_URL: `redis-tls:${redisTls.port}` },
        'redis-ca': { 'ca.crt': certificates.ca.cert },
        redis: { password: 'of an unused Redis' },
        'redis-login': login,
        'counter-api': { token: 'of-the-counter-api' },
        'redis-tls': pair,
        'server-tls': pair,
        'client-tls': tlsFiles(certificates, certificates.client),
        'ratelimit-tls': pair,
        tokens: { token: 'of a client' },
        'ads-tokens': { tokens: 'the-one-before\nthe-one-of-today\n' },
        'ads-token': { header: 'authorization:Bearer the-one-of-today' },
      };
      const items = Object.entries(secrets).map(([name, data]) => secret(namespace, name, data));
      await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    },
  };
}

function signingKey(): object {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    ...privateKey.export({ format: 'jwk' }),
    kid: 'first',
    alg: 'ES256',
    use: 'sig',
    key_ops: ['sign'],
  };
}
