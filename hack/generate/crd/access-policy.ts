import { type Field, type Fields, limitAttributes, specFields } from '@tollgate/policies/definition/fields';
import { policyGroup, policyKind } from '@tollgate/policies/definition/resource-shape';
import { conditionSchema, lastValidSchema } from './definition.ts';
import { flagSchema, type JsonSchema, keepUnknown, mapList, textSchema } from './json-schema.ts';
import { conditionColumn, renderDefinition } from './manifest.ts';

type Rule = NonNullable<JsonSchema['x-kubernetes-validations']>[number];

const { total } = specFields.rules;

/** The bounds of the lists bound the cost of comparing them. */
const specRules: readonly Rule[] = [
  { rule: 'has(self.targetRefs) != has(self.hosts)', message: 'set exactly one of targetRefs and hosts' },
  {
    rule: '!has(self.rules) || self.rules.all(r, !has(r.limits) || r.limits.all(n, (has(self.limits) && self.limits.exists(l, l.name == n)) || (has(self.defaults) && has(self.defaults.limits) && self.defaults.limits.exists(l, l.name == n))))',
    message: 'limits of a rule must be names of limits of this object',
  },
  {
    rule: `!has(self.rules) || self.rules.map(r, r.${total.field}.size()).sum() <= ${total.maxItems}`,
    message: `all rules together have at most ${total.maxItems} ${total.field}`,
  },
  {
    rule: "!(has(self.defaults) || has(self.overrides)) || (has(self.targetRefs) && self.targetRefs.all(t, t.kind == 'Gateway'))",
    message: 'defaults and overrides are for policies whose targetRefs are Gateways',
  },
];

const isUnlimited = 'has(self.unlimited) && self.unlimited';

const limitRule: Rule = {
  rule: `(${isUnlimited}) ? !has(self.requests) && !has(self.per) && !has(self.period) : has(self.requests) && has(self.per) != has(self.period)`,
  message: 'set requests with either per or period, or only unlimited: true',
};

const planRule: Rule = {
  rule: `(${isUnlimited}) != has(self.requests)`,
  message: 'set either requests or unlimited: true',
};

function schemaOf(field: Field, path: string): JsonSchema {
  const { description } = field;
  switch (field.kind) {
    case 'text':
      return textSchema(field.bounds, description);
    case 'texts':
      return {
        description,
        ...{ type: 'array', ...(field.mayBeEmpty ? undefined : { minItems: 1 }), maxItems: field.maxItems },
        ...{ 'x-kubernetes-list-type': 'atomic', items: withoutDescription(textSchema(field.bounds, '')) },
      };
    case 'choice':
      return { description, type: 'string', enum: field.values };
    case 'choices':
      return {
        ...{ description, type: 'array', minItems: 1, maxItems: field.values.length },
        ...{ 'x-kubernetes-list-type': 'atomic', items: { type: 'string', enum: field.values } },
      };
    case 'flag':
      return flagSchema(description);
    case 'count':
      return { description, type: 'integer', format: 'int64', minimum: field.min, maximum: field.max };
    case 'part':
      return { description, ...objectSchema(field.fields, path) };
    case 'parts':
      return partsSchema(field, path);
    case 'parts by name':
      return {
        ...{ description, type: 'object', maxProperties: field.maxItems },
        additionalProperties: objectSchema(field.fields, path, [planRule]),
      };
    case 'attributes':
      return { description, ...attributesSchema };
  }
}

function partsSchema({ description, fields, maxItems }: Field & { kind: 'parts' }, path: string): JsonSchema {
  const isLimits = path.endsWith('limits');
  const items = objectSchema(fields, path, isLimits ? [limitRule] : undefined);
  if (isLimits) return mapList(['name'], items, { description, maxItems });
  return { description, type: 'array', minItems: 1, maxItems, 'x-kubernetes-list-type': 'atomic', items };
}

const attributeName: JsonSchema = { type: 'string', minLength: 1, maxLength: 256 };

/** Each is a text or an object: keywords of the one do not apply to the other. */
const attributesSchema: JsonSchema = {
  ...{ type: 'array', minItems: 1, maxItems: 8, 'x-kubernetes-list-type': 'atomic' },
  items: {
    pattern: `^(?:${Object.keys(limitAttributes).join('|')})$`,
    anyOf: [{ required: ['header'] }, { required: ['claim'] }],
    properties: { header: attributeName, claim: attributeName },
    ...keepUnknown,
  },
};

function withoutDescription({ description: _, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

function objectSchema(fields: Fields, path: string, rules?: readonly Rule[]): JsonSchema {
  const required = Object.entries(fields).flatMap(([name, field]) => (field.required ? [name] : []));
  return {
    type: 'object',
    ...(required.length === 0 ? undefined : { required }),
    properties: Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [name, schemaOf(field, `${path}.${name}`)]),
    ),
    ...keepUnknown,
    ...(rules && { 'x-kubernetes-validations': rules }),
  };
}

export const policySpecSchema: JsonSchema = {
  description: 'Who may call the routes of the target, and how much.',
  ...objectSchema(specFields, 'spec', specRules),
};

const conditions = (description: string): JsonSchema =>
  mapList(['type'], conditionSchema(description), { description: 'Conditions.', maxItems: 8 });

const policyStatusSchema: JsonSchema = {
  description: 'Observed state of the policy; written by the xDS server.',
  type: 'object',
  // A new object is not current before the xDS server has seen it, as tools such as Flux expect.
  default: { observedGeneration: -1 },
  properties: {
    observedGeneration: {
      description: 'Generation of the object that was validated last; -1 for none.',
      ...{ type: 'integer', format: 'int64', minimum: -1 },
    },
    target: { description: 'The target in short, for a column.', type: 'string', maxLength: 1024 },
    access: { description: 'Who may call in short, for a column.', type: 'string', maxLength: 64 },
    limits: { description: 'The limits in short, for a column.', type: 'string', maxLength: 1024 },
    allowedHosts: {
      description:
        'Hosts that are allowed for the namespace, or were while the policy had them: their requests are denied when the permission ends.',
      ...{ type: 'array', maxItems: specFields.hosts.maxItems, 'x-kubernetes-list-type': 'atomic' },
      items: { type: 'string', maxLength: 255 },
    },
    lastValid: lastValidSchema,
    conditions: conditions(
      'Ready: the policy is in force, for tools that wait for an object (kstatus). Only while True: Reconciling and Stalled.',
    ),
    ancestors: {
      description: 'Gateways at which the policy is in force, with conditions (GEP-713).',
      ...{ type: 'array', maxItems: 16, 'x-kubernetes-list-type': 'atomic' },
      items: {
        type: 'object',
        required: ['ancestorRef', 'controllerName'],
        properties: {
          ancestorRef: {
            description: 'The Gateway; without Gateway API, the policy itself.',
            type: 'object',
            required: ['name'],
            properties: Object.fromEntries(
              ['group', 'kind', 'namespace', 'name', 'sectionName'].map((name) => [
                name,
                { description: `Its ${name}.`, type: 'string', maxLength: 253 } satisfies JsonSchema,
              ]),
            ),
          },
          controllerName: { description: 'tollgate.dev/policy', type: 'string', maxLength: 253 },
          conditions: conditions(
            'Accepted: the policy is valid and has its target. Programmed: all connected auth servers and limiters have acknowledged it. Enforced: a gateway has asked for a request of it.',
          ),
        },
      },
    },
  },
};

/** The manifest of the CRD of AccessPolicy. */
export const renderPolicyCrd = (): string =>
  renderDefinition({
    ...{ group: policyGroup, kind: policyKind, version: 'v1alpha1' },
    ...{ plural: 'accesspolicies', singular: 'accesspolicy', shortName: 'ap' },
    labels: { 'gateway.networking.k8s.io/policy': 'Direct' },
    columns: [
      { name: 'Target', type: 'string', jsonPath: '.status.target' },
      { name: 'Access', type: 'string', jsonPath: '.status.access' },
      { name: 'Limits', type: 'string', jsonPath: '.status.limits' },
      { name: 'Ready', type: 'string', jsonPath: conditionColumn('Ready', 'status') },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      { name: 'Reason', type: 'string', priority: 1, jsonPath: conditionColumn('Ready', 'reason') },
      { name: 'Message', type: 'string', priority: 1, jsonPath: conditionColumn('Ready', 'message') },
    ],
    description: 'Who may call routes, and how much.',
    spec: policySpecSchema,
    status: policyStatusSchema,
  });
