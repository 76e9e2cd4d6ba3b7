import t from 'tap';
import { Value } from 'typebox/value';
import { operations } from '../../src/app/operations.ts';
import { components } from '../../src/http/open-api-components.ts';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';

t.test('the server serves its OpenAPI document', async (t) => {
  const server = await startAuthServer(t);
  const answer = await server.call('GET', '/openapi.json');
  t.match(answer, {
    status: 200,
    body: {
      openapi: '3.1.0',
      servers: [{ url: 'http://localhost:9999' }],
      paths: {
        '/signup': {
          post: {
            requestBody: {
              content: { 'application/json': { schema: { properties: { email: { type: 'string' } } } } },
            },
          },
        },
        '/user': { get: { security: [{ user: [] }] } },
        '/token': { post: { requestBody: { content: { 'application/x-www-form-urlencoded': {} } } } },
      },
    },
  });
});

t.test('the document has exactly the routes of the server', async (t) => {
  const server = await startAuthServer(t);
  const { body } = await server.call('GET', '/openapi.json');
  const paths = body.paths as Record<string, Record<string, { summary?: string }>>;
  const served = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  t.same(
    served.filter((route) => !Object.hasOwn(operations, route)),
    [],
    'without a summary',
  );
  t.same(
    Object.keys(operations).filter((route) => !served.includes(route)),
    [],
    'described and not there',
  );
});

t.test('responses match the document', async (t) => {
  const server = await startAuthServer(t);
  const signedUp = await server.call('POST', '/signup', {
    body: { email: 'bob@example.com', password: 'correct horse' },
  });
  const { accessToken } = await signUp(server);
  const user = await server.call('GET', '/user', { token: accessToken });
  const settings = await server.call('GET', '/settings');
  const refused = await server.call('GET', '/user');
  t.same([...Value.Errors(components.Session, signedUp.body)], []);
  t.same([...Value.Errors(components.User, user.body)], []);
  t.same([...Value.Errors(components.Settings, settings.body)], []);
  t.same([...Value.Errors(components.Error, refused.body)], []);
  const users = await server.call('GET', '/admin/users', { token: adminToken() });
  t.equal(users.headers.get('x-total-count'), '2');
  t.same([...Value.Errors(components.UserList, users.body)], []);
});

t.test('routes that need a CAPTCHA are those of the document', async (t) => {
  const server = await startAuthServer(t, {
    SECURITY_CAPTCHA_ENABLED: 'true',
    SECURITY_CAPTCHA_PROVIDER: 'turnstile',
    SECURITY_CAPTCHA_SECRET: 'secret',
    PASSKEY_ENABLED: 'true',
    WEBAUTHN_RP_DISPLAY_NAME: 'Example',
    WEBAUTHN_RP_ID: 'example.com',
    WEBAUTHN_RP_ORIGINS: 'https://example.com',
  });
  for (const [route, { captcha = false }] of Object.entries(operations)) {
    const [method = '', path = ''] = route.split(' ');
    if (method === 'GET') continue;
    const query = path === '/token' ? '?grant_type=password' : '';
    const { body } = await server.call(method, `${path.replaceAll(/[{}]/g, '')}${query}`, { body: {} });
    t.equal(body.error_code === 'captcha_failed', captcha, route);
  }
});
