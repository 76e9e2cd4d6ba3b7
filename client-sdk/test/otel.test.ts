import t from 'tap';
import { ConnectionError } from '../src/errors.ts';
import type { RequestContext } from '../src/hooks.ts';
import { type Attributes, otelHooks } from '../src/otel.ts';

const context: RequestContext = {
  ...{
    operation: 'token',
    grantType: 'client_credentials',
    clientAuth: 'client_secret_basic',
    method: 'POST',
  },
  ...{ url: 'https://as.test/oauth/token', signal: undefined },
};

function recorder() {
  const spans: { name: string; attributes: Attributes; failed: boolean; ended: boolean }[] = [];
  const points: { name: string; value: number; attributes: Attributes | undefined }[] = [];
  const tracer = {
    startSpan(name: string, { attributes = {} }: { attributes?: Attributes } = {}) {
      const span = { name, attributes: { ...attributes }, failed: false, ended: false };
      spans.push(span);
      return {
        setAttributes: (more: Attributes) => Object.assign(span.attributes, more),
        setStatus: ({ code }: { code: number }) => {
          span.failed = code === 2;
        },
        end: () => {
          span.ended = true;
        },
      };
    },
  };
  const note = (name: string) => (value: number, attributes?: Attributes) =>
    void points.push({ name, value, attributes });
  const meter = {
    createHistogram: (name: string) => ({ record: note(name) }),
    createCounter: (name: string) => ({ add: note(name) }),
  };
  return { spans, points, tracer, meter };
}

t.test('a call that is retried has a span and a duration for each attempt', (t) => {
  const { spans, points, tracer, meter } = recorder();
  const hooks = otelHooks({ tracer, meter });
  hooks.onRequest({ context, attempt: 1 });
  hooks.onError({ context, attempt: 1, error: new ConnectionError('no'), durationMs: 5 });
  hooks.onRetry({ context, attempt: 1, delayMs: 10, reason: 'OAUTH_CLIENT_CONNECTION' });
  hooks.onRequest({ context, attempt: 2 });
  hooks.onResponse({ context, attempt: 2, status: 200, durationMs: 20, code: undefined });
  t.match(spans, [
    {
      name: 'oauth.token',
      attributes: { 'oauth.attempt': 1, 'error.type': 'OAUTH_CLIENT_CONNECTION' },
      ...{ failed: true, ended: true },
    },
    {
      attributes: {
        'oauth.attempt': 2,
        'http.response.status_code': 200,
        'oauth.grant_type': 'client_credentials',
      },
      ...{ failed: false, ended: true },
    },
  ]);
  t.match(points, [
    { name: 'oauth.client.request.duration', value: 0.005 },
    { name: 'oauth.client.retries', value: 1 },
    { name: 'oauth.client.request.duration', value: 0.02 },
  ]);
  t.end();
});

t.test('unbounded values become "other", and no URL or id is recorded', (t) => {
  const { spans, points, tracer, meter } = recorder();
  const hooks = otelHooks({ tracer, meter });
  const odd = { ...context, grantType: 'urn:mine:1234', url: 'https://as.test/users/42' };
  hooks.onRequest({ context: odd, attempt: 1 });
  hooks.onResponse({ context: odd, attempt: 1, status: 400, durationMs: 1, code: 'my_error_42' });
  t.match(spans, [{ attributes: { 'oauth.grant_type': 'other', 'error.type': 'other' }, failed: true }]);
  t.notMatch(JSON.stringify([spans, points]), /42/);
  t.end();
});

t.test('refreshes and revocations are counted', (t) => {
  const { points, meter } = recorder();
  const hooks = otelHooks({ meter });
  hooks.onRequest({ context, attempt: 1 });
  hooks.onRefresh({ expiresAt: 1, rotated: true });
  hooks.onRevoke({ hint: 'refresh_token' });
  hooks.onRevoke({ hint: 'free text' });
  t.same(points, [
    { name: 'oauth.client.refreshes', value: 1, attributes: { 'oauth.rotated': 'true' } },
    { name: 'oauth.client.revocations', value: 1, attributes: { 'oauth.token_type_hint': 'refresh_token' } },
    { name: 'oauth.client.revocations', value: 1, attributes: { 'oauth.token_type_hint': 'none' } },
  ]);
  t.end();
});
