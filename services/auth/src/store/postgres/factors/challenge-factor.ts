import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { FactorStore } from '../../../ports/factor-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';

const address = (parameter: string): string => `coalesce(nullif(${parameter}, ''), '0.0.0.0')::inet`;

const challenge = `
  with challenge as (
    insert into mfa_challenges (id, factor_id, created_at, ip_address) values ($1, $2, $4, ${address('$3')})
  ), challenged as (
    update mfa_factors set last_challenged_at = $4 where id = $2
  )
  ${auditInsert(5)}`;

const find = `
  select c.created_at, c.verified_at is not null as spent, c.ip_address = ${address('$3')} as same_address,
    f.secret, coalesce(f.last_totp_period, 0) as last_period
  from mfa_challenges c join mfa_factors f on f.id = c.factor_id
  where c.id = $1 and c.factor_id = $2`;

interface ChallengeRow {
  readonly created_at: Date;
  readonly spent: boolean;
  readonly same_address: boolean;
  readonly secret: string | null;
  readonly last_period: number;
}

/** The functions of {@link FactorStore} for challenges. */
export function challengeFactor(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<FactorStore, 'challenge' | 'findChallenge'> {
  return {
    async challenge({ id, factorId, ip, at }, audit) {
      await query(sql, challenge, [id, factorId, ip, at, ...auditParameters(audit)]);
    },
    async findChallenge({ challengeId, factorId, ip }) {
      const [row] = await query(sql, find, [challengeId, factorId, ip]);
      if (row === undefined) return undefined;
      // Parsed boundary: these are the columns selected above, with the types of the schema.
      const r = row as unknown as ChallengeRow;
      return {
        createdAt: r.created_at,
        isSpent: r.spent,
        isSameAddress: r.same_address,
        secret: cipher.open(factorId, r.secret ?? ''),
        lastPeriod: r.last_period,
      };
    },
  };
}
