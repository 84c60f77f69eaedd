/**
 * The properties of a request that rules can use. All are optional: if a rule needs a key that the request does not have, its
 * `onMissingKey` applies.
 */
export interface RequestContext {
  readonly clientIp?: string | undefined
  readonly userId?: string | undefined
  readonly apiKey?: string | undefined
  readonly method?: string | undefined
  readonly path?: string | undefined
  /** Headers by lower-case name. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

/** The context of a request that matches the path of a rule. */
export interface MatchedContext extends RequestContext {
  /** The values of the `{name}` segments. */
  readonly pathVariables?: Readonly<Record<string, string>> | undefined
  /** The interpretation of the path that matched, if servers interpret the path differently. */
  readonly reading?: string | undefined
}
