import type { Session } from '../../../domain/session.ts';
import type { Row } from '../query.ts';

/** Columns of a session, for `… sessions s`; {@link sessionOf} reads them. */
export const sessionColumns = `
  s.id as session_id, s.user_id as session_user_id, s.aal as session_aal, s.factor_id as session_factor_id,
  s.created_at as session_created_at, s.refreshed_at at time zone 'utc' as session_refreshed_at,
  s.not_after as session_not_after, s.user_agent as session_user_agent, host(s.ip) as session_ip, s.tag as session_tag,
  (select json_agg(json_build_object('method', a.authentication_method, 'at', a.updated_at) order by a.updated_at desc, a.id)
    from mfa_amr_claims a where a.session_id = s.id) as session_methods`;

interface SessionRow {
  readonly session_id: string | null;
  readonly session_user_id: string;
  readonly session_aal: Session['aal'] | null;
  readonly session_factor_id: string | null;
  readonly session_created_at: Date;
  readonly session_refreshed_at: Date | null;
  readonly session_not_after: Date | null;
  readonly session_user_agent: string | null;
  readonly session_ip: string | null;
  readonly session_tag: string | null;
  readonly session_methods: readonly { readonly method: string; readonly at: string }[] | null;
}

/** Reads {@link sessionColumns}; undefined where an outer join found none. */
export function sessionOf(row: Row): Session | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as SessionRow;
  if (r.session_id === null) return undefined;
  return {
    id: r.session_id,
    userId: r.session_user_id,
    aal: r.session_aal ?? 'aal1',
    factorId: r.session_factor_id ?? undefined,
    createdAt: r.session_created_at,
    refreshedAt: r.session_refreshed_at ?? undefined,
    notAfter: r.session_not_after ?? undefined,
    userAgent: r.session_user_agent ?? '',
    ip: r.session_ip ?? '',
    tag: r.session_tag ?? '',
    methods: r.session_methods?.map(({ method, at }) => ({ method, at: new Date(at) })) ?? [],
  };
}
