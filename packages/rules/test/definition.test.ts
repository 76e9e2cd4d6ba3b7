import { type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf';
import { runSteps } from '@tollgate/kit/time';
import {
  RateLimitConfigSchema,
  RateLimitDescriptorSchema,
  RateLimitPolicySchema,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { domainOptions, type NamedField, rows } from '@tollgate/rules/fields';
import { readResource } from '@tollgate/rules/read-resource';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { fromMessage, toMessage } from '@tollgate/rules/rule-message';
import { parseFirstDocument } from '@tollgate/yaml/first-document';
import t from 'tap';
import { readRuleFile } from '../src/read/rule-file.ts';
import { manifestOf } from './helpers/resource-cases.ts';

/** How a source spells fields and values. */
interface Format {
  readonly nameOf: (field: NamedField) => string;
  readonly choiceOf: (field: NamedField & { kind: 'choice' }, value: string) => string;
}

const ruleFile: Format = { nameOf: ({ file }) => file, choiceOf: (_, value) => value };
const resource: Format = {
  nameOf: ({ name }) => name,
  choiceOf: ({ values }, value) => values[value]?.resource ?? '',
};

const texts = ['a', 'a*', '5m'];

/** Values that readers accept and the wire preserves. */
function samplesOf(field: NamedField): readonly unknown[] {
  switch (field.kind) {
    case 'text':
      return texts.filter((text) => field.bounds.pattern?.test(text) ?? true);
    case 'percent':
      return ['1%', '50%'];
    case 'choice':
      return Object.keys(field.values).filter((value) => field.values[value]?.wire !== 0);
    case 'flag':
      return [true];
    case 'count':
      return [...(field.optional === true ? [0] : []), Math.max(field.min, 1), field.max];
    case 'names':
      return [['a', 'b']];
    case 'json':
      return [{ a: [1, null, { b: 'c' }] }];
    case 'limit':
      return [{ unlimited: true, requestsPerUnit: 0 }];
    case 'descriptors':
      return [[{ key: 'below' }]];
  }
}

/** A value as a source has it. */
function written(field: NamedField, value: unknown, format: Format): unknown {
  if (field.kind === 'choice') return format.choiceOf(field, String(value));
  if (field.kind === 'limit') return { unlimited: true };
  return field.kind === 'names' && Array.isArray(value) ? value.map((name) => ({ name })) : value;
}

type Part = 'domain' | 'descriptor' | 'limit';
type Spec = Readonly<Record<string, unknown>>;

/** A document with the field, in the words of a source. */
function documentWith(part: Part, field: NamedField, value: unknown, format: Format): Spec {
  const write = (fields: readonly NamedField[], spec: Spec): Spec =>
    Object.fromEntries(
      fields
        .filter(({ name }) => spec[name] !== undefined)
        .map((each) => [format.nameOf(each), written(each, spec[each.name], format)]),
    );
  const given = { [field.name]: value };
  const whole = field.name === 'period' ? { requestsPerUnit: 1 } : { unit: 'day', requestsPerUnit: 1 };
  const limit = { ...(field.name === 'unlimited' ? undefined : whole), ...given };
  const descriptor = write(rows.descriptor, { key: 'k', value: 'v*', ...(part === 'descriptor' && given) });
  const rateLimit = Object.entries(part === 'limit' ? write(rows.limit, limit) : {});
  const limitName = format === ruleFile ? 'rate_limit' : 'rateLimit';
  const only =
    rateLimit.length === 0 ? descriptor : { ...descriptor, [limitName]: Object.fromEntries(rateLimit) };
  return { domain: 'd', ...(part === 'domain' && write(rows.domain, given)), descriptors: [only] };
}

function readFile(document: Spec): RuleDocument {
  const parsed = runSteps(parseFirstDocument(JSON.stringify(document)));
  if (!parsed.ok) throw new Error(parsed.error.reason);
  const refuse = (_node: number, _path: string, message: string): void => {
    throw new Error(message);
  };
  return runSteps(readRuleFile(parsed.tree, 'rules.yaml', refuse, refuse));
}

function readManifest(spec: Spec): RuleDocument {
  const result = readResource(manifestOf(spec), 'shop/web');
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join('\n'));
  return result.document;
}

const partOf = (document: RuleDocument, part: Part): Spec => {
  const [descriptor] = document.descriptors;
  const specs = { domain: document, descriptor, limit: descriptor?.rateLimit };
  return { ...specs[part] };
};

/** Without handles of locations. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, item: unknown) => (key === 'at' ? undefined : item)));

const parts: readonly (readonly [Part, readonly NamedField[]])[] = [
  ['domain', domainOptions],
  ['descriptor', rows.descriptor],
  ['limit', rows.limit],
];

for (const [part, fields] of parts) {
  for (const field of fields) {
    t.test(`${field.file} of a ${part} is read from both sources, and preserved on the wire`, async (t) => {
      for (const value of samplesOf(field)) {
        const documents = [
          readFile(documentWith(part, field, value, ruleFile)),
          readManifest(documentWith(part, field, value, resource)),
        ];
        for (const document of documents) {
          t.same(plain(partOf(document, part)[field.name]), value);
          const bytes = toBinary(RateLimitConfigSchema, toMessage(document));
          const received = fromMessage(fromBinary(RateLimitConfigSchema, bytes));
          t.same(plain(partOf(received, part)[field.name]), value);
        }
      }
    });
  }
}

t.test('options of a domain on trial are preserved apart from those in force', async (t) => {
  for (const field of domainOptions) {
    for (const value of samplesOf(field)) {
      const spec = { ...documentWith('domain', field, value, resource), trial: true };
      const received = fromMessage(toMessage(readManifest(spec)));
      t.same(plain({ ...received.trial }), { descriptors: [{ key: 'k', value: 'v*' }], [field.name]: value });
      t.notOk(field.name in received);
    }
  }
});

const messages: readonly (readonly [DescMessage, readonly NamedField[], readonly string[]])[] = [
  [RateLimitConfigSchema, rows.domain, ['name', 'trial_descriptors']],
  [RateLimitDescriptorSchema, rows.descriptor, []],
  [RateLimitPolicySchema, rows.limit, []],
];

t.test('messages have the fields and values of the table, and no others', async (t) => {
  for (const [schema, fields, others] of messages) {
    const expected = fields.flatMap(({ file, wire, trialWire }) => [
      [wire, file],
      ...(trialWire === undefined ? [] : [[trialWire, `trial_${file}`]]),
    ]);
    const found = schema.fields
      .filter(({ name }) => !others.includes(name))
      .map(({ number, name }) => [number, name]);
    t.same(Object.fromEntries(found), Object.fromEntries(expected), schema.typeName);
    for (const field of fields) {
      const descriptor = schema.fields.find(({ number }) => number === field.wire);
      if (field.kind !== 'choice' || descriptor?.enum === undefined) continue;
      const numbers = descriptor.enum.values.filter(({ number }) => number !== 0);
      const values = Object.entries(field.values).filter(([, { wire }]) => wire !== 0);
      t.same(
        Object.fromEntries(numbers.map(({ name, number }) => [name, number])),
        Object.fromEntries(values.map(([name, { wire }]) => [name.toUpperCase(), wire])),
        field.file,
      );
    }
  }
});
