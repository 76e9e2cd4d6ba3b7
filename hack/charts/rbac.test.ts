import { readFile } from 'node:fs/promises';
import t from 'tap';
import { helmIsMissing, renderChart } from './support/helm.ts';
import { type ManifestObject, parseManifests } from './support/manifests.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** Rights of the ClusterRole, sorted, such as `list gateways.gateway.networking.k8s.io`. */
function listRights(objects: readonly ManifestObject[], name: string): readonly string[] {
  const role = objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name);
  if (role === undefined) throw new Error(`there is no ClusterRole ${name}`);
  // Parsed boundary: our own files, whose roles a kube-apiserver takes in other tests.
  const { rules } = role as unknown as { readonly rules: readonly Rule[] };
  return rules
    .flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${group}`)),
      ),
    )
    .sort();
}

t.test('the chart grants what rbac.yaml grants', { skip: helmIsMissing() }, async (t) => {
  const rendered = parseManifests(await renderChart('xds', []));
  const deployed = parseManifests(await readFile('services/xds/deploy/rbac.yaml', 'utf8'));
  const inChart = rendered.find(({ kind, metadata }) => kind === 'ClusterRole' && /xds$/.test(metadata.name));
  t.ok(inChart);
  t.strictSame(listRights(rendered, inChart?.metadata.name ?? ''), listRights(deployed, 'tollgate-xds'));
});
