import { createLimiterClient, unwrap } from '@tollgate/admin-clients/clients';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startXdsServer } from '@tollgate/testkit/services';
import { startWebServer } from '@tollgate/testkit/web-server';
import postgres, { type Sql } from 'postgres';
import type { Test } from 'tap';
import type { TestLimiter } from './limiter.ts';

/** Attacks are marked with the place that they were planted in. */
export const marker = (place: string) => `planted-in-${place}`;

/** Leaves attributes and elements, and adds elements that a browser would run or load. */
export const attack = (place: string) =>
  `"'></title></textarea></script><img src=x onerror=alert(1) data-attack><i>${marker(place)}`;

/** Must not become the URL of a link. */
const script = (place: string) => `javascript:alert(1)//${marker(place)}`;

/** Ids of planted rows. */
export const plantedId = 'a77ac000-0000-4000-8000-000000000001';
export const plantedProvider = 'custom:planted';

type Plant = (sql: Sql, place: string) => Promise<unknown>;

const user = (sql: Sql) => sql`auth.users`;

/** Statements that write an attack into each column of the database that a page shows. */
const columns: Readonly<Record<string, Plant>> = {
  'user-id': (sql) => sql`update auth.users set id = ${plantedId} where email = 'planted@example.com'`,
  'user-email': (sql, place) => sql`update ${user(sql)} set email = ${attack(place)} where id = ${plantedId}`,
  'user-phone': (sql, place) => sql`update ${user(sql)} set phone = ${attack(place)} where id = ${plantedId}`,
  'user-role': (sql, place) => sql`update ${user(sql)} set role = ${attack(place)} where id = ${plantedId}`,
  'user-metadata': (sql, place) =>
    sql`update ${user(sql)} set raw_user_meta_data = ${sql.json({ [attack(place)]: script(place), full_name: attack('member-name') })} where id = ${plantedId}`,
  'user-plan': (sql, place) =>
    sql`update ${user(sql)} set raw_app_meta_data = ${sql.json({ plan: attack(place) })} where id = ${plantedId}`,
  'session-agent': (sql, place) => sql`
    insert into auth.sessions (id, user_id, created_at, updated_at, aal, user_agent, ip)
    values (${plantedId}, ${plantedId}, now(), now(), 'aal1', ${attack(place)}, '192.0.2.1')`,
  'factor-name': (sql, place) => sql`
    insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at, secret)
    values (${plantedId}, ${plantedId}, ${attack(place)}, 'totp', 'unverified', now(), now(), 'x')`,
  'identity-provider': (sql, place) => sql`
    insert into auth.identities (id, user_id, provider, provider_id, identity_data, created_at, updated_at)
    values (${plantedId}, ${plantedId}, ${attack(place)}, 'x', ${sql.json({ sub: 'x', email: attack('identity-email') })}, now(), now())`,
  'organization-name': (sql, place) => sql`
    insert into auth.organizations (id, name, slug, plan, metadata)
    values (${plantedId}, ${attack(place)}, ${script('organization-slug')}, ${attack('organization-plan')},
      ${sql.json({ [attack('organization-metadata')]: 1 })})`,
  'member-role': (sql, place) => sql`
    insert into auth.organization_members (organization_id, user_id, role)
    values (${plantedId}, ${plantedId}, ${attack(place)})`,
  'organization-domain': (sql, place) => sql`
    insert into auth.organization_domains (organization_id, domain, token)
    values (${plantedId}, ${attack(place)}, ${attack('domain-token')})`,
  'key-name': (sql, place) => sql`
    insert into auth.api_keys (id, name, prefix, last4, digest, scopes, role, plan, created_by, allowed_networks, metadata,
      created_at, updated_at)
    values (${plantedId}, ${attack(place)}, ${attack('key-prefix')}, ${attack('key-end')}, 'x', ${[attack('key-scope')]},
      ${attack('key-role')}, ${attack('key-plan')}, ${attack('key-creator')}, '{}', ${sql.json({ [attack('key-metadata')]: 1 })},
      now(), now())`,
  'client-name': (sql, place) => sql`
    insert into auth.oauth_clients (id, registration_type, redirect_uris, grant_types, client_name, client_uri, logo_uri,
      client_type, token_endpoint_auth_method)
    values (${plantedId}, 'manual', ${script('client-redirect')}, 'authorization_code', ${attack(place)},
      ${script('client-uri')}, ${script('client-logo')}, 'public', 'none')`,
  'client-scope': (sql, place) => sql`
    insert into auth.oauth_client_settings (client_id, scopes, plan, metadata)
    values (${plantedId}, ${[attack(place)]}, ${attack('client-plan')}, ${sql.json({ tos_uri: script('client-terms') })})`,
  'provider-name': (sql, place) => sql`
    update auth.custom_oauth_providers set name = ${attack(place).slice(-100)}, authorization_url = ${`https://x/${attack('provider-url')}`}`,
  'audit-actor': (sql, place) => sql`
    insert into auth.audit_log_entries (id, payload, created_at, ip_address)
    values (${plantedId}, ${sql.json({
      ...{
        actor_id: attack('audit-actor-id'),
        actor_username: attack(place),
        action: attack('audit-action'),
      },
      ...{ actor_kind: attack('audit-kind'), [attack('audit-payload')]: script('audit-payload') },
    })}, now(), '192.0.2.1')`,
  'webhook-name': (sql, place) => sql`
    insert into auth.tollgate_webhooks (id, name, url, secret, event_types, last_error, created_at, updated_at)
    values (${plantedId}, ${attack(place)}, ${`https://${marker('webhook-url')}/${attack('webhook-path')}`}, 'x', ${[attack('webhook-event')]},
      ${attack('webhook-error')}, now(), now())`,
  'event-type': (sql, place) => sql`
    insert into auth.tollgate_events (event_id, user_id, webhook_id, type, data, attempts, failed_at, last_error)
    values (${plantedId}, ${plantedId}, ${plantedId}, ${attack(place)}, '{}', 1, now(), ${attack('event-error')})`,
};

/** Places of a statement that are not its name. */
const others = [
  ...['member-name', 'identity-email', 'organization-slug', 'organization-plan', 'organization-metadata'],
  ...[
    'domain-token',
    'key-prefix',
    'key-end',
    'key-scope',
    'key-role',
    'key-plan',
    'key-creator',
    'key-metadata',
  ],
  ...[
    'client-redirect',
    'client-uri',
    'client-plan',
    'provider-url',
    'audit-action',
    'audit-kind',
    'audit-payload',
  ],
  ...['webhook-url', 'webhook-event', 'webhook-error', 'event-error'],
];

/** All places; each has to be seen on a page, as text. */
export const places: readonly string[] = [
  ...Object.keys(columns).filter((place) => place !== 'user-id'),
  ...others,
  ...['limit-key', 'limit-value', 'limit-domain', 'override-reason', 'yaml', 'yaml-field', 'version'],
];

/** Writes all attacks of the database. The provider and the user exist. */
export async function plantRows(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1 });
  await sql`set session_replication_role = 'replica'`;
  try {
    for (const [place, plant] of Object.entries(columns)) await plant(sql, place);
  } finally {
    await sql.end();
  }
}

/** Rules of a limiter, in whose domain and keys attacks are. */
export const plantedRules = `domain: ${JSON.stringify(attack('limit-domain'))}
descriptors:
  - { key: ${JSON.stringify(attack('limit-key'))}, rate_limit: { unit: day, requests_per_unit: 1 } }
`;

/** Refused requests, and an override. */
export async function plantCounters(limiter: TestLimiter, token: string): Promise<void> {
  const [domain, key, value] = [attack('limit-domain'), attack('limit-key'), attack('limit-value')];
  for (let hit = 0; hit < 3; hit += 1) await limiter.send(domain, key, value);
  const client = createLimiterClient({ url: limiter.url, token, timeoutMs: 20_000 });
  const body = {
    ...{ domain, descriptors: [{ entries: [{ key, value }] }], requestsPerUnit: 2, ttlSeconds: 600 },
    reason: attack('override-reason'),
  };
  await unwrap(client.PUT('/v1/overrides', { body }));
}

/** An xDS server with an object that it refuses; the URL of its admin API. */
export async function startPlantedXds(t: Test): Promise<string> {
  const folder = makeTextFolder(t);
  folder.write(
    'planted.yaml',
    `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: planted, namespace: shop, annotations: { note: ${JSON.stringify(attack('yaml'))} } }
spec: { domain: planted, ${JSON.stringify(attack('yaml-field'))}: 1 }
`,
  );
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  return xds.adminUrl;
}

/** Metrics of a service whose version is an attack. */
export async function startPlantedMetrics(t: Test): Promise<string> {
  const version = attack('version').replaceAll('"', '\\"');
  const text = `auth_ext_authz_checks_total{result="allowed"} 1\ntollgate_build_info{version="${version}"} 1\nprocess_start_time_seconds 1\n`;
  const { port } = await startWebServer(t, (_request, response) => response.end(text));
  return `http://127.0.0.1:${port}/metrics`;
}
