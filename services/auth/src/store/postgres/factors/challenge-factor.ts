import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { FactorStore } from '../../../ports/factor-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';
import { isUniqueViolation } from '../unique-violation.ts';

/** Of challenges in the same millisecond one in a thousand has the microsecond of another. */
const maxAttempts = 5;

const address = (parameter: string): string => `coalesce(nullif(${parameter}, ''), '0.0.0.0')::inet`;

// A constraint of GoTrue forbids that two factors are challenged at the same time: random
// microseconds keep them apart.
const challenge = `
  with challenge as (
    insert into mfa_challenges (id, factor_id, created_at, ip_address, otp_code) values ($1, $2, $4, ${address('$3')}, '')
  ), challenged as (
    update mfa_factors
    set last_challenged_at = $4::timestamptz + floor(random() * 1000)::integer * interval '1 microsecond' where id = $2
  )
  ${auditInsert(5)}`;

const find = `
  select c.created_at, c.verified_at is not null as spent, c.ip_address = ${address('$3')} as same_address,
    f.secret, coalesce(p.period, 0) as last_period
  from mfa_challenges c join mfa_factors f on f.id = c.factor_id left join tollgate_totp_periods p on p.factor_id = f.id
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
      const parameters = [id, factorId, ip, at, ...auditParameters(audit)];
      for (let attempt = 1; ; attempt += 1) {
        try {
          await query(sql, challenge, parameters);
          return;
        } catch (error) {
          if (!isUniqueViolation(error) || attempt === maxAttempts) throw error;
        }
      }
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
