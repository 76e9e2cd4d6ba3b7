import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const accessPolicy = (name: string, spec: string) => `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: ${name}, namespace: shop }
spec:
${spec}`;

/** All traffic of the demo has this policy; one of its limits is on trial. */
const orders = accessPolicy(
  'orders',
  `  hosts: ["*"]
  access: { credentials: [User, ApiKey] }
  rules:
    - matches: [{ path: { value: /catalogue } }]
      access: { type: Public }
      limits: [catalogue]
  limits:
    - name: per-user
      by: [User]
      requests: 20
      per: Minute
      plans: { pro: { requests: 600 } }
    - { name: per-key, by: [ApiKey], requests: 120, per: Minute }
    - { name: smaller, by: [User], requests: 15, per: Minute, mode: Trial }
    - { name: catalogue, only: true, by: [Address], requests: 100, per: Minute }
`,
);

const others = ['billing', 'search', 'stock'].map((name) =>
  accessPolicy(
    name,
    `  hosts: [${name}.shop.example.com]\n  limits: [{ name: per-user, by: [User], requests: 300, per: Minute }]\n`,
  ),
);

const payments = (requests: string) =>
  accessPolicy(
    'payments',
    `  hosts: [payments.shop.example.com]
  access: { assurance: AAL2 }
  limits:
    - name: per-user
      by: [User]
      requests: ${requests}
      per: Minute
`,
  );

const imports = `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: imports, namespace: batch }
spec:
  domain: imports
  limits:
    - name: tenant
      match: [{ key: tenant }]
      rateLimit: { requestsPerUnit: 500, unit: Hour }
`;

/** Limits of the policy with the traffic that would refuse one plan more and free another. */
export const candidate = orders
  .replace('requests: 20', 'requests: 40')
  .replace('requests: 600', 'requests: 30');

/** Writes a folder of manifests that are all accepted. */
export function writeManifests(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'shop.yaml'), [orders, ...others].join('---\n'));
  writeFileSync(join(folder, 'imports.yaml'), imports);
  writeFileSync(join(folder, 'payments.yaml'), payments('30'));
}

/** Makes an edit that is refused: the version before stays in force. */
export function writeMistake(folder: string): void {
  writeFileSync(join(folder, 'payments.yaml'), payments('thirty'));
}
