import t from 'tap';
import { ApiResponse, type ReadOptions, type StandardSchema } from '../../src/index.ts';

function makeResponse(body: string, contentType: string | undefined, options?: ReadOptions): ApiResponse {
  const headers = new Headers(contentType === undefined ? {} : { 'content-type': contentType });
  return new ApiResponse(
    { status: 200, headers, body, url: 'https://a.test/x?access_token=s3cr3t', redirected: false },
    options,
  );
}

const jsonTypes = [
  'application/json',
  'application/json; charset=UTF-8',
  'APPLICATION/JSON',
  'text/javascript',
  'application/hal+json',
  'application/vnd.collection+json',
  'application/vnd.api+json',
  'application/vdn.api+json',
  'application/problem+json',
  'application/anything+json',
];
for (const type of jsonTypes) {
  t.test(`${type} is parsed as JSON`, async (t) => t.same(makeResponse('{"aB":1}', type).parsed, { a_b: 1 }));
}

const texts: readonly [string, string | undefined][] = [
  ['text/plain', 'text/plain'],
  ['text/html', 'text/html'],
  ['an unknown type', 'application/x-unknown'],
  ['XML without a parser', 'application/xml'],
  ['no type', undefined],
];
for (const [name, type] of texts) {
  t.test(`${name} is returned as text`, async (t) =>
    t.equal(makeResponse('{"aB":1}', type).parsed, '{"aB":1}'),
  );
}

t.test('a form is an object of strings, a repeated key an array', async (t) => {
  const body = 'a=0&b=&c=x+y%21&d=1&d=2&__proto__=p';
  const { parsed } = makeResponse(body, 'application/x-www-form-urlencoded');
  t.same(Object.entries(parsed ?? {}), [
    ['a', '0'],
    ['b', ''],
    ['c', 'x y!'],
    ['d', ['1', '2']],
    ['__proto__', 'p'],
  ]);
});

t.test('an empty body is the empty string, whatever its type', async (t) => {
  for (const type of ['application/json', 'text/html', undefined]) t.equal(makeResponse('', type).parsed, '');
});

t.test('JSON numbers, null and arrays are returned unchanged', async (t) => {
  for (const value of [1, null, [1, 2], 'x'])
    t.same(makeResponse(JSON.stringify(value), 'application/json').parsed, value);
});

t.test('parse names a format whatever the type says', async (t) => {
  t.same(makeResponse('{"a":1}', 'text/html', { parse: 'json' }).parsed, { a: 1 });
  t.same(makeResponse('a=1', 'text/html', { parse: 'form' }).parsed, { a: '1' });
  t.equal(makeResponse('{"a":1}', 'application/json', { parse: 'text' }).parsed, '{"a":1}');
  t.equal(makeResponse('{"a":1}', 'application/json', { parse: false }).parsed, '{"a":1}');
});

t.test('parse may be a function of body and response', async (t) => {
  const options: ReadOptions = { parse: (body, { status }) => ({ theBody: body, status }) };
  t.same(makeResponse('x', 'text/html', options).parsed, { the_body: 'x', status: 200 });
});

t.test('parsers by type come before the built-in ones, and serve parse xml', async (t) => {
  const parsers = { 'application/xml': () => ({ rootNode: 1 }), 'application/json': () => 'mine' };
  t.same(makeResponse('<a/>', 'application/xml', { parsers }).parsed, { root_node: 1 });
  t.same(makeResponse('<a/>', 'text/plain', { parsers, parse: 'xml' }).parsed, { root_node: 1 });
  t.equal(makeResponse('{}', 'application/json', { parsers }).parsed, 'mine');
  t.equal(makeResponse('x', 'constructor', { parsers }).parsed, 'x');
});

t.test('keyCase preserve keeps the keys', async (t) => {
  t.same(makeResponse('{"aB":{"cD":1}}', 'application/json', { keyCase: 'preserve' }).parsed, {
    aB: { cD: 1 },
  });
});

t.test('parsed is computed once', async (t) => {
  let calls = 0;
  const response = makeResponse('x', 'text/html', { parse: () => ++calls });
  t.equal(response.parsed, response.parsed);
  t.equal(calls, 1);
});

t.test('a parser that throws gives a ParseError with what it threw', async (t) => {
  const cause = new Error('mine');
  const parse = (): never => {
    throw cause;
  };
  t.throws(() => makeResponse('x', 'text/html', { parse }).parsed, { name: 'ParseError', cause });
});

t.test('malformed JSON is not quoted by its error', async (t) => {
  const error = t.throws(() => makeResponse('{"access_token":"s3cr3t', 'application/json').parsed);
  t.match(error, { name: 'ParseError', cause: { name: 'SyntaxError' } });
  t.notMatch(`${error} ${String(error instanceof Error && error.cause)}`, /s3cr3t/);
});

const userSchema: StandardSchema<{ user_name: string }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof value === 'object' &&
      value !== null &&
      'user_name' in value &&
      typeof value.user_name === 'string'
        ? { value: { user_name: value.user_name } }
        : { issues: [{ message: 'must be text', path: ['user_name'] }] },
  },
};

t.test('parsedAs gives what a schema accepts, and names the places it does not', async (t) => {
  const good = makeResponse('{"userName":"ada"}', 'application/json');
  t.equal((await good.parsedAs(userSchema)).user_name, 'ada');
  const bad = makeResponse('{"userName":1}', 'application/json');
  await t.rejects(bad.parsedAs(userSchema), { name: 'ParseError', message: /user_name: must be text/ });
});

t.test('a collision of keys is an error, unless keys are preserved', async (t) => {
  const text = '{"aB":1,"a_b":2}';
  t.throws(() => makeResponse(text, 'application/json').parsed, { name: 'ParseError', message: /"aB"/ });
  const preserved = makeResponse(text, 'application/json', { keyCase: 'preserve' });
  t.same(preserved.parsed, { aB: 1, a_b: 2 });
});

t.test('JSON of a response shows no secret of URL or body', async (t) => {
  const text = JSON.stringify(
    makeResponse('{"access_token":"s3cr3t","refresh_token":"s3cr3t","a":1}', 'application/json'),
  );
  t.notMatch(text, /s3cr3t/);
  t.match(text, /"url":"https:\/\/a\.test\/x"/);
});
