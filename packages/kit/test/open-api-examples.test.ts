import t from 'tap';
import { addExamples, type ExampleOptions } from '../src/open-api-examples.ts';

const schemas = {
  Person: {
    type: 'object',
    required: ['id', 'email', 'age', 'since'],
    properties: {
      id: { type: 'string', format: 'uuid' },
      email: { type: 'string' },
      nickname: { type: 'string' },
      age: { type: 'integer', minimum: 18 },
      since: { type: 'string', format: 'date-time' },
      deletedAt: { type: 'string', format: 'date-time' },
      state: { enum: ['active', 'banned'] },
      friends: { type: 'array', items: { $ref: '#/components/schemas/Person' } },
    },
  },
};

const json = (schema: object) => ({ content: { 'application/json': { schema } } });
const person = { $ref: '#/components/schemas/Person' };

/** The examples of the request and the response of an operation with these schemas. */
function makeExamples(
  { request = person, response = person }: { readonly request?: object; readonly response?: object },
  options: Partial<ExampleOptions> = {},
) {
  const operation = { operationId: 'put', requestBody: json(request), responses: { 200: json(response) } };
  const document = addExamples(
    { paths: { '/': { put: operation } }, components: { schemas } },
    { values: { email: 'ann@example.com', deletedAt: null }, ...options },
  );
  // Parsed boundary: the document is the one above.
  const described = (document.paths as { '/': { put: Record<string, unknown> } })['/'].put;
  const read = (body: unknown) => (body as ReturnType<typeof json>).content['application/json'];
  return {
    request: Reflect.get(read(described.requestBody), 'example'),
    response: Reflect.get(read(Object(described.responses)['200']), 'example'),
  };
}

t.test('a response has values by name, format and type, and no member without a value', async (t) => {
  const { response } = makeExamples({});
  t.match(response, {
    ...{ id: /^[0-9a-f-]{36}$/, email: 'ann@example.com', age: 18, since: /^2026-/, state: 'active' },
  });
  t.notOk(Object.hasOwn(response, 'nickname'));
  t.notOk(Object.hasOwn(response, 'deletedAt'), 'null leaves it out');
});

t.test('a response of which a required text has no value gets no example', async (t) => {
  t.equal(makeExamples({}, { values: { state: 'active' }, members: () => ['age'] }).response, undefined);
});

t.test('a request has the required members, or those of the operation', async (t) => {
  t.strictSame(Object.keys(makeExamples({}).request), ['id', 'email', 'age', 'since']);
  t.strictSame(makeExamples({}, { members: () => ['age'] }).request, { age: 18 });
  const optional = { type: 'object', properties: { age: { type: 'integer' }, email: { type: 'string' } } };
  t.strictSame(makeExamples({ request: optional }).request, { age: 1 });
  t.throws(() => makeExamples({}, { members: () => ['nickname'] }), {
    message: 'put: the examples have no value for the member nickname',
  });
});

t.test('a value of another type than that of a member is not used', async (t) => {
  const { response } = makeExamples({}, { values: { email: 'ann@example.com', age: 'old', state: 'gone' } });
  t.match(response, { age: 18, state: 'active' });
});
