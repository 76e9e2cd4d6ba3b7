import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** CRDs of Envoy Gateway, the Gateway API and Istio; `hack/setup.sh go-tools` fetches them. */
const folder = resolve(import.meta.dirname, '../../../.tools/gateway-crds');

/**
 * Why objects of gateways cannot be validated here; `false` when they can.
 *
 * @throws Error in CI, when the definitions are missing.
 */
export function definitionsAreMissing(): string | false {
  if (existsSync(folder)) return false;
  const reason = 'the CRDs of gateways are not installed: run hack/setup.sh go-tools';
  if (process.env.CI === 'true') throw new Error(reason);
  return `left out: ${reason}`;
}

/** The CustomResourceDefinitions of some kinds, as manifests. Other kinds have none. */
export function gatewayDefinitions(kinds: ReadonlySet<string>): string {
  const documents = readdirSync(folder).flatMap((file) =>
    readFileSync(join(folder, file), 'utf8').split(/^---$/m),
  );
  // Parsing five megabytes of YAML would take longer than the test.
  const kindOf = (document: string) => /^ {4}kind: (\w+)$/m.exec(document)?.[1] ?? '';
  return documents.filter((document) => kinds.has(kindOf(document))).join('---\n');
}
