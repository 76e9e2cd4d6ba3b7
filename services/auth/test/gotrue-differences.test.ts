// The list of differences in docs/coming-from-gotrue.md, compared in both directions.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { operations } from '../src/app/operations.ts';
import { errors } from '../src/errors.ts';
import { startAuthServer } from './helpers/auth-server.ts';
import {
  gotrueComponents,
  gotrueErrorCodes,
  gotrueFeatures,
  gotrueMetrics,
  gotrueRoutes,
} from './helpers/gotrue-api.ts';

const page = await readFile(join(import.meta.dirname, '../../../docs/coming-from-gotrue.md'), 'utf8');
/** Everything in backticks. */
const named = new Set(Array.from(page.matchAll(/`([^`\n]+)`/g), ([, text = '']) => text));

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

interface OpenApi {
  readonly paths: Readonly<
    Record<string, Record<string, { requestBody?: { content: Record<string, { schema?: Schema }> } }>>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

async function readDocument(t: Test): Promise<OpenApi> {
  const { body } = await (await startAuthServer(t)).call('GET', '/openapi.json');
  // Parsed boundary: the form of OpenAPI documents.
  return body as unknown as OpenApi;
}

/** Names of all members, also of those of members that are no component. */
function memberNames(schema: Schema | undefined, components: ReadonlySet<string>): string[] {
  return Object.entries(schema?.properties ?? {}).flatMap(([name, member]) => {
    const inner = member.items ?? member;
    if (inner.properties === undefined || components.has(JSON.stringify(inner))) return [name];
    return memberNames(inner, components).map((below) => `${name}.${below}`);
  });
}

const split = (members = ''): string[] => members.split(' ').filter((name) => name !== '');

/** Names that only one of both has, as the page writes them. */
function difference(gotrue: readonly string[], ours: readonly string[]): string | undefined {
  const only = (names: readonly string[], others: readonly string[]) =>
    names
      .filter((name) => !others.includes(name))
      .sort()
      .map((name) => `\`${name}\``)
      .join(', ');
  const cells = [only(gotrue, ours), only(ours, gotrue)];
  return cells.every((cell) => cell === '') ? undefined : cells.join(' | ');
}

t.test('members of bodies that only one of both has are in the table', async (t) => {
  const document = await readDocument(t);
  const { schemas } = document.components;
  const components = new Set(Object.values(schemas).map((schema) => JSON.stringify(schema)));
  const found = new Map<string, string[]>();
  const compare = (name: string, gotrue: readonly string[], schema: Schema | undefined) => {
    const cells = difference(gotrue, memberNames(schema, components));
    if (cells !== undefined) found.set(cells, [...(found.get(cells) ?? []), name]);
  };
  for (const [route, request] of Object.entries(gotrueRoutes)) {
    const [method = '', path = ''] = route.split(' ');
    const content = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content;
    compare(`\`${route}\``, split(request), content?.['application/json']?.schema);
  }
  for (const [name, members] of Object.entries(gotrueComponents))
    compare(`\`${name}\``, split(members), schemas[name]);
  const rows = page
    .slice(page.indexOf('### Members of bodies'))
    .split('\n### ')[0]
    ?.split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .slice(1, 4)
        .map((cell) => cell.trim())
        .join(' | '),
    );
  t.same(new Set(rows), new Set([...found].map(([cells, names]) => `${names.join(', ')} | ${cells}`)));
});

t.test('each response of a route of GoTrue is compared', (t) => {
  for (const route of Object.keys(gotrueRoutes)) {
    const response = operations[route]?.response;
    const names =
      typeof response === 'object' && 'oneOf' in response ? response.oneOf : [response ?? []].flat();
    for (const name of names)
      t.ok(name === 'IdentityList' || Object.hasOwn(gotrueComponents, name), `${route}: ${name}`);
  }
  t.end();
});

t.test('routes that only one of both has are named', (t) => {
  const ours = Object.keys(operations);
  t.same(
    Object.keys(gotrueRoutes).filter((route) => !ours.includes(route)),
    [],
    'of GoTrue',
  );
  const isNamed = (route: string) => {
    const [method, path = ''] = route.replaceAll(/\{\w+\}/g, '<id>').split(' ');
    return [...named].some((name) => {
      const [first, second] = name.split(' ');
      return second === undefined ? isBelow(path, first) : first === method && isBelow(path, second);
    });
  };
  t.same(
    ours.filter((route) => !Object.hasOwn(gotrueRoutes, route) && !isNamed(route)),
    [],
    'of Tollgate',
  );
  for (const path of gotrueFeatures)
    t.ok(
      [...named].some((name) => name === path || name.startsWith(`${path}/`)),
      path,
    );
  t.end();
});

/** Whether a path is this one, or below it. */
function isBelow(path: string, root = ''): boolean {
  return root.length > 1 && (path === root || path.startsWith(`${root}/`));
}

t.test('error codes of GoTrue are ours, or named', (t) => {
  t.same(
    gotrueErrorCodes.filter((code) => !Object.hasOwn(errors, code) && !named.has(code)),
    [],
  );
  t.end();
});

t.test('metrics of GoTrue are ours, or named, and others of ours have a prefix or are named', async (t) => {
  const server = await startAuthServer(t, {
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
  });
  const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
  const text = await (await fetch(url)).text();
  const ours = Array.from(text.matchAll(/^# TYPE (\w+) /gm), ([, name = '']) => name);
  t.same(
    gotrueMetrics.filter((name) => !ours.includes(name) && !named.has(name)),
    [],
    'of GoTrue',
  );
  t.same(
    ours.filter(
      (name) =>
        !/^(?:auth|tollgate|nodejs|process)_/.test(name) && !gotrueMetrics.includes(name) && !named.has(name),
    ),
    [],
    'of Tollgate',
  );
});
