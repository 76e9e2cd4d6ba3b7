import { readFileSync } from 'node:fs';
import { domainOptions, rows } from '@tollgate/rules/fields';
import { load } from 'js-yaml';
import t from 'tap';
import { renderCrd } from './definition.ts';
import { itemOf, type JsonSchema, listFields } from './json-schema.ts';

interface Manifest {
  readonly spec: {
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: JsonSchema } }[];
  };
}

interface Field {
  readonly path: readonly string[];
  readonly description: string | undefined;
}

/** Fields on every level. */
const walk = (schema: JsonSchema, parents: readonly string[] = []): Field[] =>
  listFields(schema).flatMap(([name, field]) => {
    const path = [...parents, name];
    return [{ path, description: field.description }, ...walk(itemOf(field), path)];
  });

// Parsed boundary: the manifest as the API server gets it.
const [version] = (load(renderCrd()) as Manifest).spec.versions;
const fields = walk(version?.schema.openAPIV3Schema ?? {}).filter(
  ({ path: [part] }) => part === 'spec' || part === 'status',
);

t.test('every field of spec and status has a description', async (t) => {
  t.ok(fields.length > 200, 'all levels of descriptors are walked');
  t.same(
    fields.filter(({ description = '' }) => description === '').map(({ path }) => path.join('.')),
    [],
  );
});

t.test('the CRD has every field of the rule language', async (t) => {
  const present = new Set(fields.map(({ path }) => path.join('.')));
  const expected = [
    ...domainOptions.map(({ name }) => name),
    ...rows.descriptor.map(({ name }) => `descriptors.${name}`),
    ...rows.limit.map(({ name }) => `descriptors.rateLimit.${name}`),
    ...rows.limit.filter(({ name }) => name !== 'name').map(({ name }) => `limits.rateLimit.${name}`),
    ...rows.descriptor.flatMap(({ name, part }) => {
      if (part === 'limit') return [`limits.${name}`];
      return part === 'match' ? [`limits.match.${name}`] : [];
    }),
  ];
  t.same(
    expected.filter((path) => !present.has(`spec.${path}`)),
    [],
  );
});

t.test('the tables of the README have every field of spec and status', async (t) => {
  const readme = readFileSync(new URL('../../../crds/README.md', import.meta.url), 'utf8');
  const sections = new Map(
    readme.split(/^#+ /m).map((section): [string, string] => [section.split('\n')[0] ?? '', section]),
  );
  const missing = fields.filter(
    ({ path }) =>
      path.length > 1 && !sections.get(`Fields of \`${path.at(-2)}\``)?.includes(`\n| \`${path.at(-1)}\` `),
  );
  t.same(
    missing.map(({ path }) => path.join('.')),
    [],
  );
});
