import type { Certificates } from '@tollgate/testkit/certificates';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { readObject } from './manifest-object.ts';

/** Kinds of others that our charts have objects of: group, version, plural. */
const kinds = {
  Certificate: ['cert-manager.io', 'v1', 'certificates'],
  HTTPRoute: ['gateway.networking.k8s.io', 'v1', 'httproutes'],
  PrometheusRule: ['monitoring.coreos.com', 'v1', 'prometheusrules'],
  ServiceMonitor: ['monitoring.coreos.com', 'v1', 'servicemonitors'],
} as const;

/** Definitions of these kinds that take anything: their owners have better ones. */
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

/** Does what cert-manager would: for each Certificate of a namespace makes the Secret that it asks for. */
export async function issueCertificates(
  kube: KubeApiserver,
  certificates: Certificates,
  namespace: string,
): Promise<void> {
  const { stdout } = await kube.kubectl([
    'get',
    'certificates.cert-manager.io',
    '-n',
    namespace,
    '-o',
    'json',
  ]);
  // Parsed boundary: a list, as kubectl writes it.
  const { items } = JSON.parse(stdout) as { readonly items: readonly unknown[] };
  const secrets = items.map(readObject).map(({ spec }) => {
    // Parsed boundary: ours.
    const { secretName, dnsNames } = spec as { secretName: string; dnsNames: readonly string[] };
    const subjectAltNames = dnsNames.map((name) => `DNS:${name}`);
    const pair = certificates.issue({ name: `${namespace}-${secretName}`, commonName: '', subjectAltNames });
    return secret(namespace, secretName, tlsFiles(certificates, pair));
  });
  if (secrets.length > 0)
    await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: secrets }));
}

/** What a Secret of a certificate holds. */
export function tlsFiles(
  { ca }: Certificates,
  { cert, key }: { readonly cert: string; readonly key: string },
): Readonly<Record<string, string>> {
  return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
}

/** A Secret. */
export function secret(
  namespace: string,
  name: string,
  stringData: Readonly<Record<string, string>>,
): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData };
}
