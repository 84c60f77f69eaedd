/**
 * The properties of a request that rules can use. All are optional: if a rule needs a key that the request does not have, its
 * `onMissingKey` applies.
 */
export interface RequestContext {
  /**
   * The key that rules count, in place of their `limitScope`. Rules of scope GLOBAL ignore it. With an empty string the request
   * has no key, and each rule's `onMissingKey` applies.
   */
  readonly key?: string | undefined
  /** The IP address of the client, for rules of scope IP. */
  readonly clientIp?: string | undefined
  /** The authenticated user, for rules of scope USER_ID. */
  readonly userId?: string | undefined
  /** The API key, for rules of scope API_KEY. */
  readonly apiKey?: string | undefined
  /** The HTTP method, in any case. */
  readonly method?: string | undefined
  /** The path of the URL. A query string is ignored. */
  readonly path?: string | undefined
  /** Headers by lower-case name. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  /** Data of the application, for conditions and keys such as `attributes.tenant`. */
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

/** The context of a request that matches the path of a rule. */
export interface MatchedContext extends RequestContext {
  /** The values of the `{name}` segments. */
  readonly pathVariables?: Readonly<Record<string, string>> | undefined
  /** The interpretation of the path that matched, if servers interpret the path differently. */
  readonly reading?: string | undefined
}
